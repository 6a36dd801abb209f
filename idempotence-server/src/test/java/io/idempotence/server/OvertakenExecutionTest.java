package io.idempotence.server;

import static io.idempotence.server.AttemptsAtOneId.ID;
import static io.idempotence.server.AttemptsAtOneId.LEASE;
import static io.idempotence.server.AttemptsAtOneId.OTHER;
import static io.idempotence.server.AttemptsAtOneId.OWN;
import static io.idempotence.server.AttemptsAtOneId.POLICY;
import static io.idempotence.server.AttemptsAtOneId.refusal;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.OnAbandoned;
import io.idempotence.http.Refusal;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.FaultyStorage.Call;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Take-overs: the end of the execution that was overtaken, and the attempts that follow. */
class OvertakenExecutionTest {
    @RegisterExtension
    private final AttemptsAtOneId attempts = new AttemptsAtOneId();

    /** Returns an execution that has taken over from an interrupted one, whose outcome is unknown. */
    private ClaimedExecution takenOver() {
        attempts.run();
        attempts.clock.advance(LEASE);
        return attempts.run();
    }

    private ClaimedExecution next() {
        assertThat(refusal(Optional.of(attempts.claim()))).isEqualTo(Refusal.IN_PROGRESS);
        attempts.clock.advance(Duration.ofMillis(1));
        return attempts.run();
    }

    @Test
    @DisplayName(
            "T7: after a take-over that its policy releases the next one is a take-over: what was first done is not known")
    void aTakeOverThatFailsIsFollowedByATakeOver() throws Exception {
        ClaimedExecution second = takenOver();
        CompletableFuture<Decision> waiter =
                Duplicates.claim(attempts.idempotence, IdempotentCall.of(ID), POLICY, Duration.ofMinutes(5));
        assertThat(second.finish(Verdict.RELEASE, OWN)).isEmpty();
        assertThat(refusal(Optional.of(waiter.orTimeout(1, TimeUnit.MINUTES).join())))
                .isEqualTo(Refusal.IN_PROGRESS);

        ClaimedExecution third = next();
        assertThat(third.takenOver()).isTrue();
        assertThat(third.fence()).isEqualTo(3);
        third.overtaken();
        assertThat(third.finish(Verdict.KEEP, OWN)).isPresent();

        ClaimedExecution fourth = next();
        assertThat(fourth.takenOver()).isTrue();
        fourth.finish(Verdict.KEEP, OWN);
        assertThat(attempts.state()).isEqualTo(State.COMPLETED);
        assertThat(attempts.told).doesNotContain("FENCED", "LOST", "STORAGE_ERROR");
    }

    @Test
    void aHandlerThatDeclaresThatNothingTookEffectReleasesATakeOver() {
        ClaimedExecution second = takenOver();
        second.release();
        second.finish(Verdict.KEEP, OWN);
        assertThat(attempts.state()).isEqualTo(State.RELEASED);
        assertThat(attempts.run().takenOver()).isFalse();
    }

    @Test
    void aRenewalThatIsLateDoesNotRenewALeaseThatWasEnded() {
        ClaimedExecution second = takenOver();
        second.finish(Verdict.RELEASE, OWN);
        second.lease().renew();
        assertThat(next().takenOver()).isTrue();
    }

    @Test
    @DisplayName("T21: a take-over whose replies are lost is given back as it was found")
    void aTakeOverInVainIsFollowedByATakeOver() {
        attempts.run();
        attempts.clock.advance(LEASE);
        attempts.storage.after((call, which) -> {
            if (call == Call.CLAIM) {
                throw new StorageUnavailableException("the storage does not respond", null);
            }
        });
        assertThat(refusal(Optional.of(attempts.claim()))).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        long renewals = attempts.storage.count(Call.RENEW);
        attempts.storage.after((call, which) -> {});
        await().until(() -> attempts.storage.count(Call.RENEW) + attempts.storage.count(Call.RELEASE) > renewals);
        attempts.idempotence.close();
        attempts.clock.advance(Duration.ofMillis(1));
        try (Idempotence other = Idempotence.over(attempts.memory)) {
            ClaimedExecution execution = (ClaimedExecution) other.engine().claim(IdempotentCall.of(ID), POLICY);
            assertThat(execution.takenOver()).isTrue();
            assertThat(execution.fence()).isEqualTo(3);
        }
    }

    private ClaimedExecution overtaken() {
        ClaimedExecution late = attempts.run();
        attempts.clock.advance(LEASE);
        return late;
    }

    @Test
    @DisplayName("T14: a late owner's failure is replaced by its successor's outcome, its success only by a result")
    void aLateFailureGivesWay() {
        ClaimedExecution late = overtaken();
        ClaimedExecution successor = attempts.run();
        assertThat(successor.takenOver()).isTrue();
        assertThat(late.finish(Verdict.RELEASE, OWN)).as("nothing to give yet").isEmpty();
        assertThat(attempts.told).contains("TAKE_OVER", "FENCED");
        assertThat(attempts.state()).isEqualTo(State.IN_PROGRESS);
        attempts.clock.advance(LEASE);
        ClaimedExecution last = attempts.run();
        last.finish(Verdict.KEEP, ClaimResult.noResult());
        assertThat(refusal(successor.finish(Verdict.RELEASE, OWN))).isEqualTo(Refusal.RESULT_UNAVAILABLE);
    }

    @Test
    void aLateSuccessGivesWayToAResult() {
        ClaimedExecution late = overtaken();
        attempts.run().finish(Verdict.KEEP, OTHER);
        assertThat(late.finish(Verdict.KEEP, OWN))
                .hasValueSatisfying(instead ->
                        assertThat(((Decision.Replay) instead).result()).isEqualTo(OTHER));
    }

    @Test
    @DisplayName("an overtaken execution is refused as in progress even if the storage fails")
    void anOvertakenExecutionIsRefusedAsInProgress() {
        ClaimedExecution execution = attempts.run();
        attempts.fail(Call.RELEASE, new StorageUnavailableException("the storage does not respond", null));
        execution.overtaken();
        assertThat(refusal(execution.finish(Verdict.KEEP, OWN))).isEqualTo(Refusal.IN_PROGRESS);
        assertThat(execution.finish(Verdict.KEEP, OWN))
                .as("the first call counts")
                .isEmpty();
        attempts.storage.before((call, which) -> {});
        await().until(() -> attempts.state() == State.RELEASED);
    }

    @Test
    @DisplayName("T14: work that fails late gets its successor's result; an error of the machine is not hidden by it")
    void workThatFailsLateGetsTheResultOfItsSuccessor() throws Exception {
        Idempotence other = Idempotence.builder(attempts.memory).policy(POLICY).build();
        assertThat(attempts.idempotence.execute(ID, () -> {
                    attempts.clock.advance(LEASE);
                    other.execute(ID, () -> "theirs");
                    throw new IllegalStateException("down");
                }))
                .isEqualTo("theirs");
        IdempotenceId second = IdempotenceId.of("order-2");
        assertThatThrownBy(() -> attempts.idempotence.execute(second, () -> {
                    attempts.clock.advance(LEASE);
                    other.execute(second, () -> "theirs");
                    throw new StackOverflowError();
                }))
                .isInstanceOf(StackOverflowError.class);
        other.close();
    }

    @Test
    @DisplayName("T12: a release whose reply is lost is no overlap: any execution since then began after it")
    void aReleaseWhoseReplyGetsLostAlarmsNobody() {
        ClaimedExecution first = attempts.run();
        attempts.storage.after((call, which) -> {
            if (call == Call.RELEASE && attempts.storage.count(Call.RELEASE) == 1) {
                throw new StorageUnavailableException("the storage does not respond", null);
            }
        });
        first.finish(Verdict.RELEASE, OWN);
        ClaimedExecution second = attempts.run();
        await().until(() -> attempts.storage.count(Call.RELEASE) == 2);
        second.finish(Verdict.KEEP, OWN);
        attempts.idempotence.close();
        assertThat(attempts.told)
                .containsExactlyInAnyOrder(
                        "CLAIMED", "STORAGE_ERROR", "overhead of RUN", "CLAIMED", "RELEASED", "overhead of RUN");
    }

    @Test
    @DisplayName("T14: a release whose reply is lost is an overlap if the lease was over when the handler ended")
    void aLateReleaseWhoseCallGetsLostAlarms() {
        IdempotencePolicy brief = IdempotencePolicy.builder()
                .lease(Duration.ofMillis(200))
                .onAbandoned(OnAbandoned.RE_EXECUTE)
                .build();
        attempts.fail(Call.RENEW, new StorageUnavailableException("the storage does not respond", null));
        ClaimedExecution late = attempts.run(brief);
        await().until(() -> late.lease().mayBeOver());
        attempts.clock.advance(LEASE);
        attempts.run();
        attempts.fail(Call.RELEASE, new StorageUnavailableException("the storage does not respond", null));
        late.finish(Verdict.RELEASE, OWN);
        attempts.storage.before((call, which) -> {});
        await().until(() -> attempts.told.contains("FENCED"));
    }
}
