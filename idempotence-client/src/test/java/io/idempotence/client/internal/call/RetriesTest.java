package io.idempotence.client.internal.call;

import static org.assertj.core.api.Assertions.assertThat;

import io.github.resilience4j.core.IntervalBiFunction;
import io.github.resilience4j.retry.Retry;
import io.github.resilience4j.retry.RetryConfig;
import io.github.resilience4j.retry.RetryRegistry;
import io.github.resilience4j.retry.event.RetryEvent;
import io.idempotence.client.IdempotenceClientAttemptEvent.Outcome;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.RetryBudget;
import io.idempotence.client.internal.http.Deadline;
import io.idempotence.client.internal.http.Observation;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

class RetriesTest {
    private static final Logger LOG = LoggerFactory.getLogger(RetriesTest.class);

    private final RetryRegistry registry = RetryRegistry.ofDefaults();
    private final IdempotenceClientConfig config =
            IdempotenceClientConfig.builder().retryRegistry(registry).build();
    private final RetryBudget budget = config.budget("orders");

    private static RetryConfig attempts(int n) {
        return RetryConfig.custom()
                .maxAttempts(n)
                .waitDuration(Duration.ofMillis(1))
                .build();
    }

    private static Observation refused() {
        Observation seen = new Observation();
        seen.started();
        seen.failed(new java.net.ConnectException());
        return seen;
    }

    private RetryDecision decision(Outcome outcome, Duration left) {
        return new RetryDecision(outcome, refused(), Deadline.in(left), budget, LOG);
    }

    private long ask(Retry retry, Outcome outcome) {
        return decision(outcome, Duration.ofMinutes(1)).waitBeforeNext(retry.asyncContext(), new IOException("x"));
    }

    @Test
    void mostSpecificInstanceOfTheRegistryWins() {
        Retries retries = new Retries("orders", config);
        assertThat(retries.of("create").getRetryConfig().getMaxAttempts()).isEqualTo(3);
        registry.retry("idempotence", attempts(4));
        assertThat(retries.of("create").getRetryConfig().getMaxAttempts()).isEqualTo(4);
        registry.retry("orders", attempts(5));
        assertThat(retries.of("create").getRetryConfig().getMaxAttempts()).isEqualTo(5);
        registry.retry("orders#create", attempts(6));
        assertThat(retries.of("create").getRetryConfig().getMaxAttempts()).isEqualTo(6);
        assertThat(retries.of("list").getRetryConfig().getMaxAttempts()).isEqualTo(5);
    }

    @Test
    void instanceIsReplacedOnceAndANewOneTakesEffectOnTheNextCall() {
        Retries retries = new Retries("orders", config);
        registry.retry("orders", attempts(5));
        Retry first = retries.of("create");
        assertThat(retries.of("list")).isSameAs(first).isSameAs(new Retries("orders", config).of("create"));
        assertThat(registry.find("orders")).containsSame(first);
        registry.replace("orders", Retry.of("orders", attempts(2)));
        assertThat(retries.of("create").getRetryConfig().getMaxAttempts()).isEqualTo(2);
    }

    @Test
    void eventsReachTheConsumersOfTheReplacedInstance() {
        List<RetryEvent.Type> heard = new ArrayList<>();
        Retry original = registry.retry("orders", attempts(2));
        original.getEventPublisher().onEvent(event -> heard.add(event.getEventType()));
        Retry governed = new Retries("orders", config).of("create");
        Retry.AsyncContext<Object> context = governed.asyncContext();
        assertThat(decision(Outcome.NOT_SENT, Duration.ofMinutes(1)).waitBeforeNext(context, new IOException("x")))
                .isEqualTo(1);
        context.onComplete();
        ask(governed, Outcome.FINAL);
        assertThat(heard)
                .containsExactly(RetryEvent.Type.RETRY, RetryEvent.Type.SUCCESS, RetryEvent.Type.IGNORED_ERROR);
        assertThat(registry.retry("orders").getMetrics().getNumberOfSuccessfulCallsWithRetryAttempt())
                .isEqualTo(1);
        assertThat(registry.retry("orders").getMetrics().getNumberOfFailedCallsWithoutRetryAttempt())
                .isEqualTo(1);
    }

    @Test
    void predicateCanForbidButNotForce() {
        registry.retry(
                "orders",
                RetryConfig.custom().ignoreExceptions(IOException.class).build());
        registry.retry(
                "forcing", RetryConfig.custom().retryOnException(e -> true).build());
        assertThat(ask(new Retries("orders", config).of("m"), Outcome.NOT_SENT)).isNegative();
        Retry forcing = new Retries("forcing", config).of("m");
        assertThat(ask(forcing, Outcome.FINAL)).isNegative();
        assertThat(ask(forcing, Outcome.REFUSED)).isNegative();
        assertThat(ask(forcing, Outcome.NOT_SENT)).isNotNegative();
        assertThat(ask(forcing, Outcome.UNDETERMINED)).isNotNegative();
    }

    @Test
    void requestThatMustNotBeSentAgainIsNotWhateverItCameToAndPaysNothing() {
        Retry retry = new Retries("orders", config).of("create");
        for (Outcome outcome : List.of(Outcome.NOT_SENT, Outcome.UNDETERMINED, Outcome.RETRYABLE)) {
            assertThat(ask(retry, outcome)).as("%s", outcome).isNotNegative();
            Observation seen = refused();
            seen.mustNotBeSentAgain();
            RetryDecision decision = new RetryDecision(outcome, seen, Deadline.in(Duration.ofMinutes(1)), budget, LOG);
            assertThat(decision.waitBeforeNext(retry.asyncContext(), new IOException("x")))
                    .as("%s", outcome)
                    .isNegative();
        }
        assertThat(budget.available()).isEqualTo(500 - 3 * 5);
    }

    @Test
    void outsideOfADecisionTheInstanceBehavesAsBefore() {
        registry.retry(
                "orders",
                RetryConfig.custom()
                        .maxAttempts(2)
                        .waitDuration(Duration.ofMillis(1))
                        .retryExceptions(IllegalStateException.class)
                        .build());
        Retry governed = new Retries("orders", config).of("create");
        assertThat(governed.asyncContext().onError(new IllegalStateException())).isEqualTo(1);
        assertThat(governed.asyncContext().onError(new IllegalArgumentException()))
                .isEqualTo(-1);
        assertThat(budget.available()).isEqualTo(500);
    }

    @Test
    void neverWaitsPastTheDeadlineAndPaysNothingThen() {
        registry.retry(
                "orders",
                RetryConfig.custom().waitDuration(Duration.ofSeconds(5)).build());
        Retry retry = new Retries("orders", config).of("create");
        assertThat(decision(Outcome.NOT_SENT, Duration.ofSeconds(4))
                        .waitBeforeNext(retry.asyncContext(), new IOException()))
                .isNegative();
        assertThat(budget.available()).isEqualTo(500);
        assertThat(decision(Outcome.NOT_SENT, Duration.ofMinutes(4))
                        .waitBeforeNext(retry.asyncContext(), new IOException()))
                .isEqualTo(5000);
        assertThat(budget.available()).isEqualTo(495);
    }

    @Test
    void predicateThatThrowsEndsTheRetries() {
        registry.retry(
                "orders",
                RetryConfig.custom()
                        .retryOnException(e -> {
                            throw new IllegalStateException("bug");
                        })
                        .build());
        assertThat(ask(new Retries("orders", config).of("m"), Outcome.NOT_SENT)).isNegative();
    }

    @Test
    void interruptedThreadIsNotRetried() {
        Retry retry = new Retries("orders", config).of("create");
        Thread.currentThread().interrupt();
        try {
            assertThat(ask(retry, Outcome.NOT_SENT)).isNegative();
        } finally {
            assertThat(Thread.interrupted()).isTrue();
        }
    }

    @Test
    void backoffStaysWithinItsBounds() {
        IntervalBiFunction<Object> least = Retries.backoff(config, () -> 0.999999);
        IntervalBiFunction<Object> most = Retries.backoff(config, () -> 0.0);
        long[] bounds = {100, 200, 400, 800, 1600, 2000, 2000};
        for (int attempt = 1; attempt <= bounds.length; attempt++) {
            assertThat(least.apply(attempt, null)).isZero();
            assertThat(most.apply(attempt, null)).isEqualTo(bounds[attempt - 1]);
        }
        assertThat(most.apply(100, null)).isEqualTo(2000);
        IdempotenceClientConfig half = config.toBuilder().jitter(0.5).build();
        assertThat(Retries.backoff(half, () -> 0.999999).apply(1, null)).isEqualTo(50);
        IdempotenceClientConfig none = config.toBuilder().jitter(0).build();
        assertThat(Retries.backoff(none, () -> 0.7).apply(2, null)).isEqualTo(200);
    }

    /** Full jitter: anything from nothing to the bound, so that callers who failed together do not come back together. */
    @Test
    void waitsAreSpreadOverTheWholeOfTheirBound() {
        IntervalBiFunction<Object> interval =
                new Retries("orders", config).of("create").getRetryConfig().getIntervalBiFunction();
        List<Long> waits = new ArrayList<>();
        for (int i = 0; i < 500; i++) {
            waits.add(interval.apply(2, null));
        }
        assertThat(waits).allMatch(wait -> wait >= 0 && wait <= 200);
        assertThat(waits).anyMatch(wait -> wait < 50).anyMatch(wait -> wait > 150);
        assertThat(waits.stream().distinct().count()).isGreaterThan(50);
    }
}
