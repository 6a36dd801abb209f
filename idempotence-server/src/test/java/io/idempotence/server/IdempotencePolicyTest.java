package io.idempotence.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.idempotence.FailureRule;
import io.idempotence.OnAbandoned;
import io.idempotence.server.IdempotencePolicy.Verdict;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** Tests of which outcome keeps an ID, which releases it, and what a policy may contain. */
class IdempotencePolicyTest {
    private static IdempotencePolicy of(FailureRule rule) {
        return IdempotencePolicy.builder().failureRule(rule).build();
    }

    @Test
    void defaultsAreThoseOfTheDocumentation() {
        IdempotencePolicy policy = IdempotencePolicy.defaults();
        assertThat(policy.lease()).isEqualTo(Duration.ofSeconds(30));
        assertThat(policy.retention()).isEqualTo(Duration.ofHours(24));
        assertThat(policy.failureRule()).isEqualTo(FailureRule.RELEASE_ON_SYSTEM_FAILURE);
        assertThat(policy.onAbandoned()).isEqualTo(OnAbandoned.REFUSE);
    }

    @Test
    @DisplayName("without a recovery rule an abandoned ID stays unknown")
    void withoutARecoveryRuleTheOutcomeStaysUnknown() throws Exception {
        assertThat(IdempotencePolicy.defaults().recovery().wasApplied(null, 1))
                .isEqualTo(IdempotencePolicy.Applied.UNKNOWN);
    }

    @Test
    void aBusinessFailureIsKeptAndASystemFailureReleased() {
        IdempotencePolicy policy = of(FailureRule.RELEASE_ON_SYSTEM_FAILURE);
        for (int status : List.of(200, 302, 399, 400, 404, 407, 409, 422, 424, 426, 428, 430, 499)) {
            assertThat(policy.ofStatus(status)).as("%d", status).isEqualTo(Verdict.KEEP);
        }
        for (int status : List.of(408, 425, 429, 500, 503, 599)) {
            assertThat(policy.ofStatus(status)).as("%d", status).isEqualTo(Verdict.RELEASE);
        }
        assertThat(policy.ofException(new IOException())).isEqualTo(Verdict.RELEASE);
    }

    @Test
    void theOtherRulesKeepEverythingOrOnlySuccess() {
        for (int status : List.of(200, 399, 400, 408, 500)) {
            assertThat(of(FailureRule.STORE_EVERYTHING).ofStatus(status)).isEqualTo(Verdict.KEEP);
            assertThat(of(FailureRule.STORE_SUCCESS_ONLY).ofStatus(status))
                    .as("%d", status)
                    .isEqualTo(status < 400 ? Verdict.KEEP : Verdict.RELEASE);
        }
        assertThat(of(FailureRule.STORE_EVERYTHING).ofException(new IOException()))
                .isEqualTo(Verdict.KEEP);
        assertThat(of(FailureRule.STORE_SUCCESS_ONLY).ofException(new IOException()))
                .isEqualTo(Verdict.RELEASE);
    }

    @Test
    void theStrictRuleReleasesNothingOfItself() {
        IdempotencePolicy policy = of(FailureRule.RELEASE_IF_NOTHING_TOOK_EFFECT);
        for (int status : List.of(200, 399, 400, 422)) {
            assertThat(policy.ofStatus(status)).as("%d", status).isEqualTo(Verdict.KEEP);
        }
        for (int status : List.of(408, 425, 429, 500, 503)) {
            assertThat(policy.ofStatus(status)).as("%d", status).isEqualTo(Verdict.UNKNOWN);
        }
        assertThat(policy.ofException(new IOException())).isEqualTo(Verdict.UNKNOWN);
    }

    @Test
    void aRuleForAStatusWinsOverTheFailureRule() {
        IdempotencePolicy policy = IdempotencePolicy.builder()
                .status(200, Verdict.UNKNOWN)
                .status(599, Verdict.KEEP)
                .build();
        assertThat(policy.ofStatus(200)).isEqualTo(Verdict.UNKNOWN);
        assertThat(policy.ofStatus(599)).isEqualTo(Verdict.KEEP);
        assertThat(policy.ofStatus(201)).isEqualTo(Verdict.KEEP);
        for (int status : List.of(199, 600)) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> IdempotencePolicy.builder().status(status, Verdict.KEEP))
                    .withMessageContaining("got " + status);
        }
    }

    @Test
    void aCauseCountsTwentyDeepAndNoDeeper() {
        IdempotencePolicy policy = IdempotencePolicy.builder()
                .exception(IOException.class, Verdict.UNKNOWN)
                .build();
        Throwable nested = new IOException();
        for (int depth = 1; depth < 20; depth++) {
            nested = new IllegalStateException(nested);
        }
        assertThat(policy.ofException(nested)).isEqualTo(Verdict.UNKNOWN);
        assertThat(policy.ofException(new IllegalStateException(nested))).isEqualTo(Verdict.RELEASE);
    }

    @Test
    void aRetentionMayBeAsLongAsTheLeaseAndBothHaveBounds() {
        Duration longest = Duration.ofDays(400);
        Duration shortest = Duration.ofMillis(10);
        assertThat(IdempotencePolicy.builder()
                        .retention(shortest)
                        .lease(shortest)
                        .build()
                        .retention())
                .isEqualTo(shortest);
        assertThat(IdempotencePolicy.builder().retention(longest).build().retention())
                .isEqualTo(longest);
        for (Duration wrong : List.of(shortest.minusNanos(1), longest.plusNanos(1))) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> IdempotencePolicy.builder().retention(wrong))
                    .withMessageContaining("retention must be");
        }
    }

    @Test
    void aBuilderOfAPolicyChangesOnlyWhatItIsGiven() {
        IdempotencePolicy.Recovery recovery = (call, fence) -> IdempotencePolicy.Applied.NO;
        IdempotencePolicy policy = IdempotencePolicy.builder()
                .lease(Duration.ofSeconds(7))
                .retention(Duration.ofHours(7))
                .failureRule(FailureRule.STORE_EVERYTHING)
                .recover(recovery)
                .status(404, Verdict.RELEASE)
                .exception(IllegalStateException.class, Verdict.UNKNOWN)
                .build();

        IdempotencePolicy changed =
                policy.toBuilder().retention(Duration.ofHours(8)).build();

        assertThat(changed.retention()).isEqualTo(Duration.ofHours(8));
        assertThat(changed)
                .usingRecursiveComparison()
                .ignoringFields("retention")
                .isEqualTo(policy);
        assertThat(policy.retention()).isEqualTo(Duration.ofHours(7));
    }
}
