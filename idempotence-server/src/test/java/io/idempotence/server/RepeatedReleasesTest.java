package io.idempotence.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.server.IdempotenceListener.ReleaseReason;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.FaultyStorage.Call;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** The events of a release that was executed in the background and whose reply was lost (T12). */
class RepeatedReleasesTest {
    private static final IdempotencePolicy POLICY = IdempotencePolicy.defaults();

    private final IdempotenceStorage memory = IdempotenceStorage.inMemory();
    private final FaultyStorage storage = new FaultyStorage(memory);
    private final List<IdempotenceEvent> events = new CopyOnWriteArrayList<>();
    private final List<String> reasons = new CopyOnWriteArrayList<>();
    private final Idempotence idempotence = Idempotence.builder(storage)
            .listener(new IdempotenceListener() {
                @Override
                public void onEvent(IdempotenceEvent event, IdempotenceId which) {
                    events.add(event);
                }

                @Override
                public void onReleased(IdempotenceId which, ReleaseReason reason) {
                    reasons.add(reason.toString());
                }
            })
            .build();
    private final IdempotenceId id = IdempotenceId.of("order-1");

    @AfterEach
    void close() {
        storage.before((call, which) -> {}).after((call, which) -> {});
        idempotence.close();
    }

    private ClaimedExecution run(IdempotencePolicy policy) {
        return (ClaimedExecution) idempotence.engine().claim(IdempotentCall.of(id), policy);
    }

    private ClaimedExecution run(Duration lease) {
        return run(IdempotencePolicy.builder().lease(lease).build());
    }

    private static StorageUnavailableException unavailable() {
        return new StorageUnavailableException("the storage does not respond", null);
    }

    private static StorageUnavailableException notSent() {
        return StorageUnavailableException.notSent("no free connection", null);
    }

    /** From now on, these calls are never sent, and all others are. */
    private void neverSend(Call... calls) {
        Set<Call> unsent = Set.of(calls);
        storage.before((call, which) -> {
            if (unsent.contains(call)) {
                throw notSent();
            }
        });
    }

    /**
     * From now on, the first release is never sent. The second is executed, and its reply is lost after others have acted.
     *
     * @param calls are never sent either
     */
    private void loseTheReplyToTheSecondRelease(Consumer<StorageKey> others, Call... calls) {
        Set<Call> unsent = Set.of(calls);
        AtomicInteger sent = new AtomicInteger();
        AtomicInteger executed = new AtomicInteger();
        storage.before((call, which) -> {
                    boolean isFirst = call == Call.RELEASE && sent.incrementAndGet() == 1;
                    if (isFirst || unsent.contains(call)) {
                        throw notSent();
                    }
                })
                .after((call, which) -> {
                    if (call == Call.RELEASE && executed.incrementAndGet() == 1) {
                        others.accept(which);
                        throw unavailable();
                    }
                });
    }

    private static void fail(ClaimedExecution execution) {
        execution.finishWithoutResult(execution.byStatus(503));
    }

    @Test
    @DisplayName("T12: it is reported as a release, and not as an overlap, although the next attempt has the claim")
    void aReleaseInTheBackgroundIsReportedAlthoughTheNextAttemptHasTheClaim() {
        loseTheReplyToTheSecondRelease(which -> Claims.claim(memory, which));
        fail(run(POLICY));
        await().until(() -> storage.count(Call.RELEASE) == 3);
        await().until(() -> events.contains(IdempotenceEvent.RELEASED));
        idempotence.close();
        assertThat(events)
                .containsExactly(IdempotenceEvent.CLAIMED, IdempotenceEvent.STORAGE_ERROR, IdempotenceEvent.RELEASED);
        assertThat(reasons).containsExactly("503");
    }

    @Test
    @DisplayName("T12: it is no overlap if the lease was renewed between the handler's end and the release")
    void aReleaseAfterARenewalIsNoOverlap() {
        neverSend(Call.RENEW);
        ClaimedExecution late = run(Duration.ofSeconds(2));
        await().until(() -> late.lease().mayBeOver());
        neverSend(Call.RENEW, Call.RELEASE);
        fail(late);
        // The claim is still held: nobody has taken it over.
        neverSend(Call.RELEASE);
        await().until(() -> !late.lease().mayBeOver());
        loseTheReplyToTheSecondRelease(which -> Claims.claim(memory, which));
        await().until(() -> events.contains(IdempotenceEvent.RELEASED) || events.contains(IdempotenceEvent.FENCED));
        idempotence.close();
        assertThat(events).contains(IdempotenceEvent.RELEASED).doesNotContain(IdempotenceEvent.FENCED);
    }

    @Test
    @DisplayName("T12: it is reported as a release although the lease was over: the handler had ended before")
    void aReleaseAfterTheLeaseIsReported() {
        neverSend(Call.RENEW, Call.RELEASE);
        ClaimedExecution execution = run(Duration.ofSeconds(3));
        fail(execution);
        await().until(() -> execution.lease().mayBeOver());
        loseTheReplyToTheSecondRelease(which -> Claims.claim(memory, which), Call.RENEW);
        await().until(() -> events.size() > 2);
        idempotence.close();
        assertThat(events)
                .containsExactly(IdempotenceEvent.CLAIMED, IdempotenceEvent.STORAGE_ERROR, IdempotenceEvent.RELEASED);
    }

    @Test
    @DisplayName("T16: it is reported as a release and as a loss if the record has vanished")
    void aReleaseInTheBackgroundIsReportedAlthoughTheRecordHasVanished() {
        loseTheReplyToTheSecondRelease(memory::delete);
        fail(run(POLICY));
        await().until(() -> events.contains(IdempotenceEvent.LOST));
        idempotence.close();
        assertThat(events).contains(IdempotenceEvent.RELEASED).doesNotContain(IdempotenceEvent.FENCED);
    }

    @Test
    @DisplayName("T14: an overlap is an alarm, and no release, if no release can have been executed")
    void aReleaseThatWasNeverExecutedIsNotReported() {
        AtomicInteger sent = new AtomicInteger();
        storage.before((call, which) -> {
            if (call == Call.RELEASE && sent.incrementAndGet() <= 2) {
                throw notSent();
            } else if (call == Call.RELEASE) {
                memory.delete(which);
                Claims.claim(memory, which);
            }
        });
        fail(run(POLICY));
        await().until(() -> events.contains(IdempotenceEvent.FENCED));
        idempotence.close();
        assertThat(events).doesNotContain(IdempotenceEvent.RELEASED);
    }

    @Test
    @DisplayName("T12: what an operator released is not reported as released by the handler that could not")
    void aReleaseByAnOperatorIsNotReported() {
        neverSend(Call.RENEW, Call.RELEASE);
        ClaimedExecution execution = run(Duration.ofSeconds(2));
        StorageKey key = execution.key();
        fail(execution);
        await().until(() -> memory.find(key).orElseThrow().state() == State.ABANDONED);
        assertThat(memory.resolve(key, 1, Resolution.NOT_APPLIED, Claims.RETENTION))
                .isTrue();
        Claims.claim(memory, key);
        AtomicInteger released = new AtomicInteger();
        storage.before((call, which) -> {}).after((call, which) -> {
            if (call == Call.RELEASE) {
                released.incrementAndGet();
            }
        });
        await().until(() -> released.get() == 1);
        idempotence.close();
        assertThat(events).doesNotContain(IdempotenceEvent.RELEASED, IdempotenceEvent.FENCED);
    }
}
