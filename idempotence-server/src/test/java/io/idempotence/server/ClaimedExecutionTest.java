package io.idempotence.server;

import static io.idempotence.server.AttemptsAtOneId.ID;
import static io.idempotence.server.AttemptsAtOneId.KEY;
import static io.idempotence.server.AttemptsAtOneId.LEASE;
import static io.idempotence.server.AttemptsAtOneId.OWN;
import static io.idempotence.server.AttemptsAtOneId.POLICY;
import static io.idempotence.server.AttemptsAtOneId.refusal;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.HelpingWorker;
import io.idempotence.InboundRequest;
import io.idempotence.http.Refusal;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.FaultyStorage.Call;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.MovingClock;
import io.idempotence.server.storage.StorageUnavailableException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** An execution from its claim to its end, as its handler, its caller and the listener see it. */
class ClaimedExecutionTest {
    @RegisterExtension
    private final AttemptsAtOneId attempts = new AttemptsAtOneId();

    @Test
    void describesItself() {
        ClaimedExecution execution = attempts.run();
        assertThat(execution.id()).isEqualTo(ID);
        assertThat(execution.key()).isEqualTo(KEY);
        assertThat(execution.takenOver()).isFalse();
    }

    @Test
    void theHandlersCallsAreNoLongerPartOfItAfterwards() {
        Runnable leave = attempts.run().enter();
        assertThat(InboundRequest.current()).isPresent();
        leave.run();
        assertThat(InboundRequest.current()).isEmpty();
    }

    @Test
    void aThreadThatLeftItIsNotPartOfItUntilItComesBack() {
        ClaimedExecution execution = attempts.run();
        Runnable leave = execution.enter();
        Runnable enterAgain = execution.leave();
        assertThat(IdempotentExecution.current()).isEmpty();
        enterAgain.run();
        assertThat(IdempotentExecution.current()).containsExactly(execution);
        leave.run();
        assertThat(IdempotentExecution.current()).isEmpty();
    }

    @Test
    @DisplayName("P1: another task that a fork-join worker runs while this one waits is not part of it")
    void aTaskThatRunsOnTopOfItIsNotPartOfIt() throws Exception {
        ClaimedExecution execution = attempts.run();
        List<IdempotentExecution> afterwards = HelpingWorker.call(() -> {
            Runnable leave = execution.enter();
            assertThat(HelpingWorker.awaiting(IdempotentExecution::current)).isEmpty();
            assertThat(HelpingWorker.awaiting(InboundRequest::current)).isEmpty();

            List<IdempotentExecution> carried = new ArrayList<>();
            Runnable task = IdempotentExecution.carried(() -> carried.addAll(IdempotentExecution.current()));
            assertThat(HelpingWorker.awaiting(() -> {
                        task.run();
                        return IdempotentExecution.current();
                    }))
                    .isEmpty();
            assertThat(carried).containsExactly(execution);

            assertThat(IdempotentExecution.current()).containsExactly(execution);
            leave.run();
            return IdempotentExecution.current();
        });
        assertThat(afterwards).isEmpty();
    }

    @Test
    void eachAttemptIsCountedAndTimedAsWhatItCameTo() {
        ClaimedExecution execution = attempts.run();
        attempts.claim();
        execution.finish(Verdict.KEEP, OWN);
        attempts.claim();
        assertThat(attempts.told)
                .containsExactly(
                        "CLAIMED",
                        "IN_PROGRESS",
                        "overhead of REFUSE",
                        "overhead of RUN",
                        "REPLAYED",
                        "overhead of REPLAY");
    }

    @Test
    void savedIdsAreCountedAsClaimedAndAsReplayed() {
        attempts.idempotence.saveIfAbsent(ID);
        assertThat(attempts.told).containsExactly("CLAIMED");
        attempts.idempotence.saveIfAbsent(ID);
        assertThat(attempts.told).containsExactly("CLAIMED", "REPLAYED");
    }

    @Test
    @DisplayName("every release is an event with its reason, and nothing else is")
    void everyReleaseIsReportedWithItsReason() {
        ClaimedExecution byStatus = attempts.run();
        byStatus.finish(byStatus.byStatus(503), OWN);
        ClaimedExecution byException = attempts.run();
        byException.finish(byException.byException(new IllegalStateException()), OWN);
        ClaimedExecution byHandler = attempts.run();
        byHandler.release();
        byHandler.finish(byHandler.byStatus(200), OWN);
        ClaimedExecution overtaken = attempts.run();
        overtaken.overtaken();
        overtaken.finish(overtaken.byStatus(500), OWN);
        assertThat(attempts.reasons).containsExactly("503", "IllegalStateException", "handler", "overtaken");
        assertThat(attempts.told).filteredOn("RELEASED"::equals).hasSize(4);

        ClaimedExecution late = attempts.run();
        attempts.memory.delete(KEY);
        late.finish(late.byStatus(503), OWN);
        ClaimedExecution kept = attempts.run();
        kept.finish(kept.byStatus(422), OWN);
        assertThat(attempts.reasons).hasSize(4);
    }

    @Test
    void anExceptionThatWasRenderedDecidesIfThePolicySetsAVerdictForIt() {
        ClaimedExecution execution = attempts.run(IdempotencePolicy.builder()
                .exception(IOException.class, Verdict.RELEASE)
                .build());
        execution.rendered(new IllegalStateException());
        assertThat(execution.byStatus(409)).isEqualTo(Verdict.KEEP);
        execution.rendered(new UncheckedIOException(new IOException()));
        execution.finish(execution.byStatus(409), OWN);
        assertThat(attempts.reasons).containsExactly("UncheckedIOException");
    }

    @Test
    void aReleaseThatIsWrittenLaterIsReportedThen() {
        attempts.fail(Call.RELEASE, new StorageUnavailableException("the storage does not respond", null));
        ClaimedExecution execution = attempts.run();
        execution.finish(execution.byStatus(503), OWN);
        assertThat(attempts.reasons).isEmpty();
        attempts.storage.before((call, which) -> {});
        await().until(() -> attempts.reasons.equals(List.of("503")));
    }

    @Test
    void aResultThatIsTooLargeIsReported() {
        ClaimedExecution execution = attempts.run();
        attempts.told.clear();
        execution.oversize();
        assertThat(attempts.told).containsExactly("OVERSIZE");
    }

    @Test
    @DisplayName("T9: a renewal that failed is due again after a sixth of the lease")
    void aFailedRenewalIsDueAgainSoon() {
        ClaimedExecution execution = attempts.run();
        long before = System.nanoTime();
        assertThat(execution
                        .lease()
                        .isRenewalDue(
                                before + LEASE.dividedBy(3).minusSeconds(50).toNanos()))
                .isFalse();
        assertThat(execution.lease().isRenewalDue(before + LEASE.dividedBy(3).toNanos()))
                .isTrue();
        execution.lease().renewalFailed(new IllegalStateException("for the test"));
        long after = System.nanoTime();
        assertThat(execution.lease().isRenewalInTrouble()).isTrue();
        assertThat(execution.lease().isRenewalDue(before + LEASE.dividedBy(6).toNanos() - 1))
                .isFalse();
        assertThat(execution.lease().isRenewalDue(after + LEASE.dividedBy(6).toNanos()))
                .isTrue();
        execution.lease().renew();
        assertThat(execution.lease().isRenewalInTrouble()).isFalse();
    }

    @Test
    @DisplayName("T16: a lost record is reported once")
    void aLostRecordAlarmsOnce() {
        ClaimedExecution execution = attempts.run();
        attempts.memory.delete(KEY);
        attempts.told.clear();
        execution.lease().renew();
        assertThat(attempts.told).containsExactly("LOST");
        execution.finish(Verdict.KEEP, OWN);
        assertThat(attempts.told).containsExactly("LOST", "overhead of RUN");
        assertThat(attempts.state()).isEqualTo(State.COMPLETED);
    }

    @Test
    @DisplayName("T20: a damaged record is reported when it is renewed and when it is completed")
    void aDamagedRecordIsReportedAndNotWritten() {
        ClaimedExecution execution = attempts.run();
        attempts.told.clear();
        attempts.fail(Call.RENEW, new CorruptRecordException("somebody wrote over it"));
        execution.lease().renew();
        assertThat(attempts.told).containsExactly("STORAGE_ERROR");
        attempts.fail(Call.COMPLETE, new CorruptRecordException("somebody wrote over it"));
        assertThat(execution.finish(Verdict.KEEP, OWN)).isEmpty();
        assertThat(attempts.told).containsExactly("STORAGE_ERROR", "STORAGE_ERROR", "overhead of RUN");
        attempts.idempotence.close();
        assertThat(attempts.storage.count(Call.COMPLETE)).isEqualTo(1);
    }

    @Test
    void theHandlerLearnsTheNumberOfItsAttempt() throws Exception {
        IdempotentCall call = IdempotentCall.of("charge", ID);
        IdempotentWork<String> work = execution -> "attempt " + execution.attempt();
        assertThat(attempts.idempotence.execute(
                        call.withAttempt(3).withScope("acme"), POLICY, ResultCodec.text(), work))
                .isEqualTo("attempt 3");
        assertThat(attempts.idempotence.execute(call, POLICY, ResultCodec.text(), work))
                .isEqualTo("attempt 1");
        // It is the same call still.
        assertThat(attempts.idempotence.execute(call.withAttempt(2), POLICY, ResultCodec.text(), work))
                .isEqualTo("attempt 1");
        assertThatThrownBy(() -> call.withAttempt(0)).isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    @DisplayName("a duplicate may retry after half of the time that the first attempt has run, 20 to 500 ms")
    void refusalInProgressSuggestsHalfTheElapsedTime() {
        attempts.run();
        for (long[] each : new long[][] {{0, 20}, {40, 20}, {42, 21}, {1_000, 500}, {1_002, 500}, {100_000, 500}}) {
            MovingClock start = new MovingClock();
            Duration ran = Duration.between(start.instant(), attempts.clock.instant());
            attempts.clock.advance(Duration.ofMillis(each[0]).minus(ran));
            assertThat(((Decision.Refuse) attempts.claim()).retryAfter())
                    .as("after %d ms", each[0])
                    .isEqualTo(Duration.ofMillis(each[1]));
        }
    }

    @Test
    @DisplayName("T4: another request under the same ID is refused and counted")
    void anotherRequestIsRefused() {
        attempts.run();
        attempts.told.clear();
        byte[] bytes = new byte[Fingerprint.BYTES];
        bytes[0] = 1;
        Decision decision = attempts.idempotence
                .engine()
                .claim(IdempotentCall.of(ID).withFingerprint(Fingerprint.of(bytes)), POLICY);
        assertThat(refusal(Optional.of(decision))).isEqualTo(Refusal.KEY_REUSED);
        assertThat(attempts.told).containsExactly("KEY_REUSED", "overhead of REFUSE");
    }
}
