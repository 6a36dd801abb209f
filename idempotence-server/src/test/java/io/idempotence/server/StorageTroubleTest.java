package io.idempotence.server;

import static io.idempotence.server.FaultyProvider.ID;
import static io.idempotence.server.FaultyProvider.KEY;
import static io.idempotence.server.FaultyProvider.key;
import static io.idempotence.server.FaultyProvider.unavailable;
import static io.idempotence.server.Refusals.refusalOf;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.FaultyStorage.Call;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageKey;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The starts and ends of executions when single calls of the storage fail or their replies are lost. */
class StorageTroubleTest {
    @RegisterExtension
    private final FaultyProvider provider = new FaultyProvider();

    private final IdempotenceStorage memory = provider.memory;
    private final FaultyStorage storage = provider.storage;

    private static String failing() {
        throw new IllegalStateException("the card service is down");
    }

    /** The next release is executed, and its reply is lost after others have acted. */
    private void loseTheReplyToARelease(Runnable others) {
        AtomicBoolean lost = new AtomicBoolean();
        storage.after((call, which) -> {
            if (call == Call.RELEASE && lost.compareAndSet(false, true)) {
                others.run();
                throw unavailable();
            }
        });
    }

    @Test
    void aReleaseWhoseReplyWasLostIsReportedAsOneAlthoughTheNextAttemptHasRun() throws Exception {
        Idempotence other = provider.over(memory, IdempotencePolicy.defaults());
        loseTheReplyToARelease(
                () -> assertThatCode(() -> other.execute(ID, provider::work)).doesNotThrowAnyException());

        assertThatThrownBy(() -> provider.idempotence().execute(ID, StorageTroubleTest::failing))
                .hasMessage("the card service is down");

        await().until(() -> provider.events.contains(IdempotenceEvent.RELEASED));
        assertThat(provider.events).doesNotContain(IdempotenceEvent.FENCED, IdempotenceEvent.LOST);
        assertThat(provider.runs).hasValue(1);
    }

    @Test
    void aReleaseThatMeetsTheNewClaimOfAVanishedRecordIsAnAlarmWhateverRepliesWereLost() {
        AtomicBoolean lost = new AtomicBoolean();
        storage.before((call, which) -> {
            if (call == Call.RELEASE && lost.compareAndSet(false, true)) {
                memory.delete(which);
                Claims.claim(memory, which);
                throw unavailable();
            }
        });

        assertThatThrownBy(() -> provider.idempotence().execute(ID, StorageTroubleTest::failing))
                .hasMessage("the card service is down");

        await().until(() -> provider.events.contains(IdempotenceEvent.FENCED));
        assertThat(provider.events).doesNotContain(IdempotenceEvent.RELEASED);
    }

    @Test
    @DisplayName("P6: whatever a storage throws, nothing runs")
    void anUnexpectedFailureOfTheStorageRunsNothing() {
        storage.before((call, which) -> {
            throw new UnsupportedOperationException("a driver's bug");
        });
        Idempotence idempotence = provider.idempotence();
        assertThat(provider.refusal(idempotence)).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        assertThatThrownBy(() -> idempotence.saveIfAbsent(ID)).isInstanceOf(UnsupportedOperationException.class);
        assertThat(provider.runs).hasValue(0);
        assertThat(provider.events).contains(IdempotenceEvent.STORAGE_ERROR);
    }

    @Test
    @DisplayName("T22: whatever a storage throws, the real result goes to the caller and is recorded later")
    void anUnexpectedFailureAtCompletionIsRetried() throws Exception {
        Queue<Throwable> failures = new ConcurrentLinkedQueue<>(List.of(
                new StackOverflowError(),
                new UnsupportedOperationException("a driver's bug"),
                unavailable(),
                new NoClassDefFoundError("a driver's class")));
        storage.before((call, which) -> {
            Throwable failure = call == Call.COMPLETE ? failures.poll() : null;
            if (failure instanceof Error error) {
                throw error;
            } else if (failure != null) {
                throw (RuntimeException) failure;
            }
        });
        Idempotence idempotence = provider.idempotence();
        assertThat(idempotence.execute(ID, provider::work)).isEqualTo("run 1");
        await().until(() -> memory.find(KEY).orElseThrow().state() == State.COMPLETED);
        assertThat(idempotence.execute(ID, provider::work)).isEqualTo("run 1");
    }

    @Test
    @DisplayName("T22: a completion whose result finds no room to wait for the storage waits without it")
    void aCompletionThatFindsNoRoomWaitsWithoutItsResult() throws Exception {
        AtomicBoolean down = new AtomicBoolean(true);
        storage.before((call, which) -> {
            if (call == Call.COMPLETE && down.get()) {
                throw unavailable();
            }
        });
        Idempotence idempotence = provider.idempotence();
        IdempotenceId second = IdempotenceId.of("order-2");
        for (IdempotenceId each : List.of(ID, second)) {
            idempotence.execute(each, () -> provider.work().repeat((int) BackgroundWrites.MAX_BYTES / 10));
        }
        down.set(false);

        for (StorageKey each : List.of(KEY, key("order-2"))) {
            await().until(() -> memory.find(each).orElseThrow().state() == State.COMPLETED);
        }
        assertThat(idempotence.execute(ID, provider::work)).startsWith("run 1run 1");
        assertThat(refusalOf(() -> idempotence.execute(second, provider::work))).isEqualTo(Refusal.RESULT_UNAVAILABLE);
        assertThat(provider.runs).hasValue(2);
        assertThat(provider.events).doesNotContain(IdempotenceEvent.UNKNOWN);
    }

    @Test
    @DisplayName("T20: a record that was damaged while its handler ran is not written again and again")
    void aDamagedRecordIsGivenUp() throws Exception {
        storage.before((call, which) -> {
            if (call == Call.COMPLETE) {
                throw storage.count(Call.COMPLETE) == 1
                        ? unavailable()
                        : new CorruptRecordException("somebody wrote over it");
            }
        });
        Idempotence idempotence = provider.idempotence();
        assertThat(idempotence.execute(ID, provider::work)).isEqualTo("run 1");
        await().until(() -> provider.events.stream()
                        .filter(event -> event == IdempotenceEvent.STORAGE_ERROR)
                        .count()
                == 2);
        idempotence.close();
        assertThat(storage.count(Call.COMPLETE)).isEqualTo(2);
    }

    @Test
    void closingTriesEveryWaitingWriteOnceMoreAndInterruptsNone() throws Exception {
        AtomicBoolean interrupted = new AtomicBoolean();
        AtomicBoolean closing = new AtomicBoolean();
        CountDownLatch underWay = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        storage.before((call, which) -> {
            boolean background = Thread.currentThread().getName().equals("idempotence-writes");
            if (call != Call.COMPLETE) {
                return;
            }
            if (background && which.equals(key("first")) && underWay.getCount() > 0) {
                underWay.countDown();
                try {
                    goOn.await();
                } catch (InterruptedException e) {
                    interrupted.set(true);
                }
            } else if (!closing.get() || which.equals(key("broken"))) {
                throw unavailable();
            }
        });
        Idempotence idempotence = provider.idempotence();
        List<String> ids = List.of("first", "a", "broken", "b", "c");
        for (String each : ids) {
            idempotence.execute(IdempotenceId.of(each), provider::work);
        }
        underWay.await();
        closing.set(true);
        Thread closer = new Thread(idempotence::close);
        closer.start();
        await().until(() -> closer.getState() == Thread.State.TIMED_WAITING);
        goOn.countDown();
        closer.join();

        assertThat(interrupted).isFalse();
        assertThat(provider.events.stream().filter(event -> event == IdempotenceEvent.UNKNOWN))
                .hasSize(1);
        assertThat(ids.stream()
                        .filter(each -> memory.find(key(each)).orElseThrow().state() != State.COMPLETED))
                .containsExactly("broken");
    }
}
