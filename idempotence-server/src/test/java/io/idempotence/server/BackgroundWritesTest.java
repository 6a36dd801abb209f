package io.idempotence.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import io.idempotence.internal.DaemonThreads;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.FaultyStorage.Call;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** Writes that failed when they were due (T22): how many may wait, how long they may wait, and how the others are given up. */
class BackgroundWritesTest {
    private static final Duration RETENTION = Duration.ofHours(24);
    private static final ThreadFactory THREADS = DaemonThreads.named("idempotence-test");
    private static final Duration CLOSING = Duration.ofSeconds(2);
    private static final int WHOLE_ROOM = (int) BackgroundWrites.MAX_BYTES - BackgroundWrites.BYTES_PER_WRITE;
    private static final IdempotencePolicy SHORT_LEASE =
            IdempotencePolicy.builder().lease(Duration.ofMillis(250)).build();

    private final IdempotenceId id = IdempotenceId.of("order-1");
    private final IdempotenceId tooMany = IdempotenceId.of("order-2");
    private final List<String> told = new CopyOnWriteArrayList<>();
    private final Events events = new Events((event, which) -> told.add(event + " " + which.value()));
    // As nanoTime may be: about to overflow.
    private final AtomicLong now = new AtomicLong(Long.MAX_VALUE - 10);
    private final StorageGuard guard = new StorageGuard(events, () -> {}, Duration.ofSeconds(1));
    private final BackgroundWrites background =
            new BackgroundWrites(events, guard, THREADS, 1, IdempotenceEvent.UNKNOWN, now::get, CLOSING);
    private final Scheduler scheduler = new Scheduler(THREADS, 1);
    private final AtomicBoolean down = new AtomicBoolean(true);
    private final AtomicInteger tries = new AtomicInteger();
    private final AtomicInteger ends = new AtomicInteger();
    private final CountDownLatch over = new CountDownLatch(1);

    @AfterEach
    void stop() {
        over.countDown();
        down.set(false);
        background.close();
        scheduler.close();
        guard.close();
    }

    private void write() {
        tries.incrementAndGet();
        if (down.get()) {
            throw unavailable();
        }
    }

    private static StorageUnavailableException unavailable() {
        return new StorageUnavailableException("the storage does not respond", null);
    }

    private void retry(IdempotenceId which, int size) {
        background.retry(which, size, RETENTION, this::write, ends::incrementAndGet);
    }

    private void awaitTriesAfter(int number) {
        await().until(() -> tries.get() > number);
    }

    /** Until it is interrupted, or its test is over. */
    private void hang() {
        try {
            over.await();
        } catch (InterruptedException e) {
            throw unavailable();
        }
    }

    // ---- room

    @Test
    @DisplayName("a write that does not fit is given up at once: the listener gets an event, and it is never tried")
    void whatDoesNotFitIsGivenUpLoudly() {
        retry(id, WHOLE_ROOM);
        assertThat(told).isEmpty();
        assertThat(ends).hasValue(0);

        background.retry(
                tooMany,
                0,
                RETENTION,
                () -> {
                    throw new AssertionError("it was given up");
                },
                ends::incrementAndGet);

        assertThat(told).containsExactly("UNKNOWN order-2");
        assertThat(ends).hasValue(1);
        down.set(false);
        await().until(() -> ends.get() == 2);
        assertThat(told).hasSize(1);
    }

    @Test
    void roomIsGivenBackWhenAWriteIsMadeAndWhenItDidNotFit() {
        retry(id, WHOLE_ROOM - BackgroundWrites.BYTES_PER_WRITE);
        retry(tooMany, 1);
        assertThat(told).containsExactly("UNKNOWN order-2");
        retry(tooMany, 0);
        assertThat(told).hasSize(1);
        down.set(false);
        await().until(() -> ends.get() == 3);
        retry(id, WHOLE_ROOM);
        assertThat(told).hasSize(1);
    }

    @Test
    void roomIsGivenBackWhenARecordIsDamaged() {
        background.retry(
                id,
                WHOLE_ROOM,
                RETENTION,
                () -> {
                    throw new CorruptRecordException("somebody wrote over it");
                },
                ends::incrementAndGet);
        await().until(() -> told.equals(List.of("STORAGE_ERROR order-1")));
        assertThat(ends).hasValue(1);
        retry(id, WHOLE_ROOM);
        assertThat(told).hasSize(1);
    }

    @Test
    @DisplayName("T22: a completion that does not fit shows as abandoned; it is never released, and runs nothing again")
    void aCompletionThatDoesNotFitIsNeverReleased() {
        IdempotenceStorage memory = IdempotenceStorage.inMemory();
        FaultyStorage storage = new FaultyStorage(memory).before((call, key) -> {
            if (call == Call.COMPLETE) {
                throw unavailable();
            }
        });
        Idempotence idempotence = Idempotence.builder(storage)
                .listener((event, which) -> told.add(event + " " + which.value()))
                .build();
        try {
            byte[] large = StoredResult.value(new byte[WHOLE_ROOM - 1]);
            ClaimedExecution first = run(idempotence, id);
            ClaimedExecution second = run(idempotence, tooMany);
            assertThat(first.finish(Verdict.KEEP, large)).isEmpty();
            told.clear();

            assertThat(second.finish(Verdict.KEEP, large)).isEmpty();

            // It is not recorded yet; and it will not be.
            assertThat(told).containsExactly("STORAGE_ERROR order-2", "UNKNOWN order-2");
            await().until(() -> state(memory, tooMany) == State.ABANDONED);
            assertThat(idempotence.engine().claim(IdempotentCall.of(tooMany), SHORT_LEASE))
                    .isInstanceOfSatisfying(
                            Decision.Refuse.class,
                            refuse -> assertThat(refuse.refusal()).isEqualTo(Refusal.OUTCOME_UNKNOWN));
            assertThat(storage.count(Call.RELEASE)).isZero();
            storage.before((call, key) -> {});
            await().until(() -> state(memory, id) == State.COMPLETED);
        } finally {
            idempotence.close();
        }
    }

    private static ClaimedExecution run(Idempotence idempotence, IdempotenceId which) {
        IdempotentCall call = IdempotentCall.of(which);
        return (ClaimedExecution) idempotence.engine().claim(call, SHORT_LEASE);
    }

    private static State state(IdempotenceStorage storage, IdempotenceId which) {
        return storage.find(StorageKey.of("default", "", "", which))
                .orElseThrow()
                .state();
    }

    // ---- time

    @Test
    @DisplayName("T22: a write is tried until its retention is over, and once more; then it is given up with an event")
    void aWriteIsGivenUpWhenItsTimeIsOver() {
        retry(id, WHOLE_ROOM);
        awaitTriesAfter(0);
        now.addAndGet(RETENTION.toNanos() - 1);
        // Whatever try was under way: this one began in the last nanosecond, and is followed by another.
        awaitTriesAfter(tries.get() + 1);
        assertThat(told).isEmpty();
        assertThat(ends).hasValue(0);

        now.incrementAndGet();

        await().until(() -> told.equals(List.of("UNKNOWN order-1")));
        assertThat(ends).hasValue(1);
        int last = tries.get();
        retry(id, WHOLE_ROOM);
        awaitTriesAfter(last + 1);
        assertThat(told).hasSize(1);
    }

    // ---- the end

    /** Writes whose end is not given up while a busy machine pauses. */
    private BackgroundWrites patient() {
        return new BackgroundWrites(
                events, guard, THREADS, 1, IdempotenceEvent.UNKNOWN, now::get, Duration.ofMinutes(1));
    }

    @Test
    void closingTriesWaitingWritesOnceMoreAndLaterOnesOnce() {
        BackgroundWrites patient = patient();
        patient.retry(id, 0, RETENTION, this::write, ends::incrementAndGet);
        awaitTriesAfter(0);
        int before = tries.get();
        patient.close();
        assertThat(tries.get()).isBetween(before + 1, before + 2);
        int last = tries.get();
        patient.retry(id, 0, RETENTION, this::write, ends::incrementAndGet);
        assertThat(tries).hasValue(last + 1);
        patient.add(id, Duration.ofHours(1), ends::incrementAndGet);
        assertThat(ends).hasValue(1);
        assertThat(tries).hasValue(last + 1);
        assertThat(told).containsExactly("UNKNOWN order-1", "UNKNOWN order-1");
    }

    @Test
    void closingRunsDelayedTasksUnlessTheyMayBeDropped() {
        BackgroundWrites patient = patient();
        patient.add(id, Duration.ofHours(1), ends::incrementAndGet);
        assertThat(scheduler.later(Duration.ofHours(1), tries::incrementAndGet)).isNotNull();
        patient.close();
        patient.close();
        scheduler.close();
        scheduler.close();
        assertThat(scheduler.later(Duration.ZERO, tries::incrementAndGet)).isNull();
        assertThat(ends).hasValue(1);
        assertThat(tries).hasValue(0);
    }

    @Test
    void aTaskThatFailsDoesNotStopTheOthers() {
        background.add(id, Duration.ZERO, () -> {
            throw new IllegalStateException("a bug");
        });
        background.add(id, Duration.ofMillis(1), ends::incrementAndGet);
        scheduler.later(Duration.ZERO, () -> {
            throw new NoClassDefFoundError("a bug");
        });
        scheduler.later(Duration.ofMillis(1), ends::incrementAndGet);
        await().until(() -> ends.get() == 2);
    }

    @Test
    @DisplayName("at the end a write that can be made is made, while others hang")
    void whatCanBeWrittenWhenItIsClosedIsWrittenWhileOthersHang() {
        AtomicInteger hanging = new AtomicInteger();
        BackgroundWrites few =
                new BackgroundWrites(events, guard, THREADS, 3, IdempotenceEvent.UNKNOWN, now::get, CLOSING);
        Runnable hangs = () -> {
            hanging.incrementAndGet();
            hang();
        };
        // As many as there are threads are under way, and two more wait with those that can be written.
        for (int i = 0; i < 3; i++) {
            few.retry(id, 0, RETENTION, hangs, () -> {});
        }
        await().until(() -> hanging.get() == 3);
        few.add(id, Duration.ofHours(1), hangs);
        few.add(id, Duration.ofHours(1), hangs);
        for (int i = 0; i < 50; i++) {
            few.add(id, Duration.ofHours(1), ends::incrementAndGet);
        }
        few.close();
        assertThat(ends).hasValue(50);
    }

    @Test
    @DisplayName("T22: each write that is given up at close is an event")
    void whatIsGivenUpAtCloseIsReported() {
        BackgroundWrites giveBacks =
                new BackgroundWrites(events, guard, THREADS, 1, IdempotenceEvent.STORAGE_ERROR, now::get, CLOSING);
        List<BackgroundWrites> both = List.of(background, giveBacks);
        for (BackgroundWrites each : both) {
            CountDownLatch underWay = new CountDownLatch(1);
            Runnable hangs = () -> {
                underWay.countDown();
                hang();
            };
            each.retry(IdempotenceId.of("under-way"), 0, RETENTION, hangs, () -> {});
            await().until(() -> underWay.getCount() == 0);
            // The one is begun, and hangs; the other is not.
            each.retry(id, 0, RETENTION, hangs, () -> {});
            each.retry(tooMany, 0, RETENTION, hangs, () -> {});
        }

        List<Runnable> ends = both.stream().map(BackgroundWrites::beginClose).toList();
        ends.forEach(Runnable::run);

        List<String> expected = List.of(
                "UNKNOWN under-way",
                "UNKNOWN order-1",
                "UNKNOWN order-2",
                "STORAGE_ERROR under-way",
                "STORAGE_ERROR order-1",
                "STORAGE_ERROR order-2");
        await().untilAsserted(() -> assertThat(told).containsExactlyInAnyOrderElementsOf(expected));
    }

    @Test
    void interruptedCloseKeepsItsFlagAndTriesWaitingWrites() throws Exception {
        CountDownLatch underWay = new CountDownLatch(1);
        CountDownLatch never = new CountDownLatch(1);
        background.add(tooMany, Duration.ZERO, () -> {
            underWay.countDown();
            try {
                never.await();
            } catch (InterruptedException e) {
                ends.incrementAndGet();
            }
        });
        underWay.await();
        background.add(id, Duration.ofHours(1), tries::incrementAndGet);
        Thread.currentThread().interrupt();
        background.close();
        assertThat(Thread.interrupted()).isTrue();
        assertThat(tries).hasValue(1);
        // The task that hangs is interrupted.
        await().until(() -> ends.get() == 1);
    }
}
