package io.idempotence.client.internal.call;

import io.github.resilience4j.core.IntervalBiFunction;
import io.github.resilience4j.core.functions.Either;
import io.github.resilience4j.retry.Retry;
import io.github.resilience4j.retry.RetryConfig;
import io.idempotence.client.IdempotenceClientAttemptEvent.Outcome;
import io.idempotence.client.RetryBudget;
import io.idempotence.client.internal.http.Deadline;
import io.idempotence.client.internal.http.Observation;
import io.idempotence.client.internal.http.RetryAfter;
import io.idempotence.internal.ThreadBound;
import java.time.Instant;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Predicate;
import org.slf4j.Logger;

/**
 * The decision whether there is another attempt, and when.
 *
 * <p>Resilience4j takes part: it counts the attempts, its predicate can forbid a retry, and its interval is the wait unless the server
 * requests a longer one. It calls back through the predicate and the interval of {@link #govern}, in the same thread.
 */
final class RetryDecision {
    private static final ThreadBound<RetryDecision> CURRENT = new ThreadBound<>();
    private static final long STOP = -1;

    /** The smallest spread of callers that a server rejects at the same time. */
    private static final long LEAST_SPREAD_MILLIS = 250;

    private final Outcome outcome;
    private final Observation seen;
    private final Deadline deadline;
    private final RetryBudget budget;
    private final Logger log;

    RetryDecision(Outcome outcome, Observation seen, Deadline deadline, RetryBudget budget, Logger log) {
        this.outcome = outcome;
        this.seen = seen;
        this.deadline = deadline;
        this.budget = budget;
        this.log = log;
    }

    /** The wait before the next attempt in milliseconds, or a negative number to stop. */
    long waitBeforeNext(Retry.AsyncContext<Object> retry, Throwable failure) {
        try {
            return CURRENT.during(this, () -> retry.onError(failure));
        } catch (Throwable e) {
            // Also an Error: it must not hide the outcome of the attempt.
            log.warn("the predicate, interval or event consumer of a Retry threw; there is no further attempt", e);
            return STOP;
        }
    }

    private boolean mayRetry() {
        if (Thread.currentThread().isInterrupted() || !seen.mayBeSentAgain()) {
            return false;
        }
        return switch (outcome) {
            case NOT_SENT, UNDETERMINED, RETRYABLE -> true;
            default -> false;
        };
    }

    private long waitOrStop(long interval) {
        if (interval < 0) {
            return STOP;
        }
        long asked = RetryAfter.jittered(
                seen,
                Instant.now(),
                LEAST_SPREAD_MILLIS,
                deadline,
                ThreadLocalRandom.current().nextDouble());
        long wait = Math.max(interval, asked);
        return deadline.outlasts(wait) && budget.trySpend() ? wait : STOP;
    }

    /** A copy of {@code config} whose predicate and interval follow this decision. Outside of a decision it behaves as before. */
    static RetryConfig govern(RetryConfig config) {
        Predicate<Throwable> predicate = config.getExceptionPredicate();
        IntervalBiFunction<Object> interval = config.getIntervalBiFunction();
        return RetryConfig.from(config)
                .retryExceptions()
                .ignoreExceptions()
                .retryOnException(failure -> {
                    RetryDecision decision = CURRENT.get();
                    return (decision == null || decision.mayRetry()) && failure != null && predicate.test(failure);
                })
                // Resilience4j 2.2 refuses a copy with both.
                .intervalFunction(null)
                .intervalBiFunction(new GovernedInterval(interval))
                .build();
    }

    static boolean isGoverned(Retry retry) {
        return retry.getRetryConfig().getIntervalBiFunction() instanceof GovernedInterval;
    }

    private record GovernedInterval(IntervalBiFunction<Object> interval) implements IntervalBiFunction<Object> {
        @Override
        public Long apply(Integer attempt, Either<Throwable, Object> result) {
            long own = interval.apply(attempt, result);
            RetryDecision decision = CURRENT.get();
            return decision == null ? own : decision.waitOrStop(own);
        }
    }
}
