package io.idempotence.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** The end of background writes in a process that can start no thread, or too few (T22). */
class ClosingWithoutThreadsTest {
    private static final Duration RETENTION = Duration.ofHours(24);
    private static final Duration SHORT_CLOSING = Duration.ofSeconds(3);
    private static final Duration LONG_CLOSING = Duration.ofMinutes(1);

    private final IdempotenceId first = IdempotenceId.of("order-1");
    private final IdempotenceId second = IdempotenceId.of("order-2");
    private final List<String> told = new CopyOnWriteArrayList<>();
    private final Events events = new Events((event, which) -> told.add(event + " " + which.value()));
    private final StorageGuard guard = new StorageGuard(events, () -> {}, Duration.ofSeconds(1));
    private final ThreadLimit limit = new ThreadLimit();
    private final ThreadFactory threads = limit.apply("idempotence-test");
    private final AtomicInteger tries = new AtomicInteger();

    @AfterEach
    void close() {
        guard.close();
    }

    private BackgroundWrites writes(Duration closing) {
        return new BackgroundWrites(events, guard, threads, 2, IdempotenceEvent.UNKNOWN, System::nanoTime, closing);
    }

    @Test
    @DisplayName("beginClose writes nothing itself, so that other instances can begin to close")
    void beginCloseDoesNotWaitForTheStorage() {
        limit.reached();
        BackgroundWrites writes = writes(LONG_CLOSING);
        writes.retry(first, 0, RETENTION, tries::incrementAndGet, () -> {});
        Runnable end = writes.beginClose();
        assertThat(tries).hasValue(0);
        end.run();
        assertThat(tries).hasValue(1);
        assertThat(told).isEmpty();
    }

    @Test
    @DisplayName(
            "when the time is over no write begins, however many instances close; each one is given up with an event")
    void noWriteBeginsWhenTheTimeIsOver() {
        limit.reached();
        BackgroundWrites slow = writes(SHORT_CLOSING);
        BackgroundWrites other = writes(SHORT_CLOSING);
        AtomicBoolean begun = new AtomicBoolean();
        // The first of them takes all the time, whichever it is.
        for (IdempotenceId id : List.of(first, second)) {
            slow.retry(id, 0, RETENTION, () -> takeLongerThan(SHORT_CLOSING), () -> begun.set(true));
        }
        other.retry(IdempotenceId.of("order-3"), 0, RETENTION, tries::incrementAndGet, () -> {});

        List<Runnable> ends =
                List.of(slow, other).stream().map(BackgroundWrites::beginClose).toList();
        ends.forEach(Runnable::run);

        assertThat(tries).hasValue(0);
        assertThat(begun).isTrue();
        assertThat(told).hasSize(2).contains("UNKNOWN order-3");
    }

    private static void takeLongerThan(Duration time) {
        long begun = System.nanoTime();
        await().until(() -> System.nanoTime() - begun > time.toNanos());
    }

    @Test
    @DisplayName("one thread writes what waits, even if the others cannot be started, and the caller only waits for it")
    void oneThreadWritesWhatWaits() {
        limit.reached();
        BackgroundWrites writes = writes(LONG_CLOSING);
        Thread closing = Thread.currentThread();
        CountDownLatch all = new CountDownLatch(5);
        List<Thread> writers = new CopyOnWriteArrayList<>();
        for (int i = 0; i < 5; i++) {
            Runnable write = () -> {
                writers.add(Thread.currentThread());
                all.countDown();
            };
            writes.retry(IdempotenceId.of("order-" + i), 0, RETENTION, write, () -> {});
        }
        AtomicInteger started = new AtomicInteger();
        limit.reachedFor(name -> started.incrementAndGet() != 2);
        Runnable end = writes.beginClose();
        await().until(() -> all.getCount() == 0);
        end.run();
        assertThat(writers).hasSize(5).doesNotContain(closing);
        assertThat(told).isEmpty();
    }
}
