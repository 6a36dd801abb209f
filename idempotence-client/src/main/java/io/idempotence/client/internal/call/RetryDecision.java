package io.idempotence.client.internal.call;

import io.github.resilience4j.core.IntervalBiFunction;
import io.github.resilience4j.core.functions.Either;
import io.github.resilience4j.retry.Retry;
import io.github.resilience4j.retry.RetryConfig;
import io.idempotence.client.AttemptOutcome;
import io.idempotence.client.RetryBudget;
import io.idempotence.client.internal.http.Deadline;
import io.idempotence.client.internal.http.Observation;
import io.idempotence.client.internal.http.RetryAfter;
import io.idempotence.client.internal.scope.ThreadBound;
import java.time.Instant;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.DoubleSupplier;
import java.util.function.Predicate;
import org.slf4j.Logger;

/**
 * The one place that says whether there is another attempt, and when.
 *
 * <p>Resilience4j is asked as well: it counts the attempts, its predicate can forbid, its interval is the wait unless the
 * server asks for a longer one. It asks back through the predicate and the interval made here, in the same thread.
 */
final class RetryDecision {
    private static final ThreadBound<RetryDecision> CURRENT = new ThreadBound<>();
    private static final long STOP = -1;

    /** Of the callers that a server sends away at once. */
    private static final long LEAST_SPREAD_MILLIS = 250;

    private static final DoubleSupplier RANDOM =
            () -> ThreadLocalRandom.current().nextDouble();

    private final AttemptOutcome outcome;
    private final Observation seen;
    private final Deadline deadline;
    private final RetryBudget budget;
    private final Logger log;

    RetryDecision(AttemptOutcome outcome, Observation seen, Deadline deadline, RetryBudget budget, Logger log) {
        this.outcome = outcome;
        this.seen = seen;
        this.deadline = deadline;
        this.budget = budget;
        this.log = log;
    }

    /** Milliseconds to wait before the next attempt, or a negative number to stop. */
    long waitBeforeNext(Retry.AsyncContext<Object> retry, Throwable failure) {
        try {
            return CURRENT.during(this, () -> retry.onError(failure));
        } catch (Throwable e) {
            // An Error, too: it must not take away what became of the attempt.
            log.warn("The predicate, interval or event consumer of a Retry threw; there is no further attempt", e);
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
        long asked = RetryAfter.jittered(seen, Instant.now(), LEAST_SPREAD_MILLIS, deadline, RANDOM);
        long wait = Math.max(interval, asked);
        return deadline.outlasts(wait) && budget.trySpend() ? wait : STOP;
    }

    /** {@code config} with our say in it. Outside of a decision it behaves as before. */
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
