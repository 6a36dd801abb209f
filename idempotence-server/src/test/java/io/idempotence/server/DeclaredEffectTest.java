package io.idempotence.server;

import static io.idempotence.server.AttemptsAtOneId.KEY;
import static io.idempotence.server.AttemptsAtOneId.OWN;
import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.FailureRule;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.storage.IdempotenceRecord.State;
import java.util.Map;
import java.util.function.Consumer;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Failed executions that declared whether they took effect. */
class DeclaredEffectTest {
    @RegisterExtension
    private final AttemptsAtOneId attempts = new AttemptsAtOneId();

    private ClaimedExecution strict() {
        IdempotencePolicy policy = IdempotencePolicy.builder()
                .failureRule(FailureRule.RELEASE_IF_NOTHING_TOOK_EFFECT)
                .build();
        return attempts.run(policy);
    }

    @Test
    @DisplayName("the strict rule: a handler that charges and then fails is not run again")
    void aHandlerThatTookEffectAndThenFailsIsNotRunAgain() {
        ClaimedExecution execution = strict();
        execution.finish(execution.byException(new IllegalStateException("cannot serialise the receipt")), OWN);
        assertThat(attempts.state()).isEqualTo(State.UNKNOWN);
        assertThat(attempts.reasons).isEmpty();
    }

    @Test
    @DisplayName("the strict rule: what was rolled back runs again")
    void aFailureOfWhichNothingTookEffectIsReleased() {
        ClaimedExecution execution = strict();
        execution.nothingTookEffect();
        execution.finish(execution.byException(new IllegalStateException("deadlock")), OWN);
        assertThat(attempts.state()).isEqualTo(State.RELEASED);
        assertThat(attempts.reasons).containsExactly("IllegalStateException");
    }

    @Test
    void aDeclarationIsWithdrawnByWhatMayTakeEffectLaterAndForGoodByWhatDid() {
        ClaimedExecution execution = strict();
        execution.nothingTookEffect();
        execution.mayTakeEffect();
        assertThat(execution.byStatus(500)).isEqualTo(Verdict.UNKNOWN);
        execution.nothingTookEffect();
        assertThat(execution.byStatus(500)).isEqualTo(Verdict.RELEASE);
        execution.tookEffect();
        execution.nothingTookEffect();
        assertThat(execution.byStatus(500)).isEqualTo(Verdict.UNKNOWN);
    }

    @Test
    void aDeclarationDecidesNothingButWhatWouldBeUnknown() {
        ClaimedExecution execution = strict();
        execution.nothingTookEffect();
        assertThat(execution.byStatus(201)).isEqualTo(Verdict.KEEP);
        assertThat(execution.byStatus(422)).isEqualTo(Verdict.KEEP);
        // A container that gave up says unknown itself: its handler may still be running.
        execution.finish(Verdict.UNKNOWN, OWN);
        assertThat(attempts.state()).isEqualTo(State.UNKNOWN);
    }

    @Test
    @DisplayName(
            "P2: no rule and no later decision releases what took effect: a charge that fails afterwards is not run again")
    void whatTookEffectIsNeverReleased() {
        Map<String, Consumer<ClaimedExecution>> endings = Map.of(
                "200", execution -> execution.finish(execution.byStatus(200), OWN),
                "422", execution -> execution.finish(execution.byStatus(422), OWN),
                "429", execution -> execution.finish(execution.byStatus(429), OWN),
                "503", execution -> execution.finish(execution.byStatus(503), OWN),
                "exception",
                        execution -> execution.finish(execution.byException(new IllegalStateException("receipt")), OWN),
                "release()",
                        execution -> {
                            execution.release();
                            execution.finish(execution.byStatus(200), OWN);
                        },
                "overtaken()",
                        execution -> {
                            execution.overtaken();
                            execution.finish(execution.byStatus(500), OWN);
                        });
        for (FailureRule rule : FailureRule.values()) {
            IdempotencePolicy policy =
                    IdempotencePolicy.builder().failureRule(rule).build();
            endings.forEach((name, ending) -> {
                ending.accept(attempts.run(policy));
                State undeclared = attempts.state();
                attempts.memory.delete(KEY);

                ClaimedExecution tookEffect = attempts.run(policy);
                tookEffect.tookEffect();
                ending.accept(tookEffect);
                assertThat(attempts.state())
                        .as("%s, %s, after tookEffect()", rule, name)
                        .isEqualTo(undeclared == State.RELEASED ? State.UNKNOWN : undeclared);
                attempts.memory.delete(KEY);

                ClaimedExecution none = attempts.run(policy);
                none.nothingTookEffect();
                ending.accept(none);
                assertThat(attempts.state())
                        .as("%s, %s, after nothingTookEffect()", rule, name)
                        .isEqualTo(undeclared == State.UNKNOWN ? State.RELEASED : undeclared);
                attempts.memory.delete(KEY);
            });
        }
    }

    @Test
    void aReleaseThatContradictsItsEffectIsLogged() {
        try (CapturedLog log = CapturedLog.of(Idempotence.class)) {
            ClaimedExecution execution = attempts.run();
            execution.tookEffect();
            execution.release();
            execution.finish(execution.byStatus(200), OWN);
            assertThat(log.warnings())
                    .singleElement()
                    .satisfies(line -> assertThat(line.getFormattedMessage()).contains("declared that it took effect"));
        }
        assertThat(attempts.told).contains("UNKNOWN").doesNotContain("RELEASED");
    }
}
