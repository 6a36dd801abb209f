package io.idempotence.client.retry;

import io.github.resilience4j.retry.Retry;
import io.idempotence.client.IdempotenceClientEvent.Result;
import io.idempotence.http.Refusal;
import java.time.Instant;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Runs the attempts of a logical call until there is an answer, a refusal, or nothing more to try (promise P7). */
public final class CallLoop {
    private static final Logger LOG = LoggerFactory.getLogger(CallLoop.class);
    private static final long FIRST_POLL_MILLIS = 50;
    private static final long LONGEST_POLL_MILLIS = 1000;

    private final LogicalCall call;
    private final Exchange exchange;

    private CallLoop(LogicalCall call, Exchange exchange) {
        this.call = call;
        this.exchange = exchange;
    }

    /** What one attempt came to. */
    private record Ended(
            Outcome outcome,
            Observation seen,
            @Nullable Object value,
            @Nullable Throwable thrown) {}

    /** Runs the loop in this thread. */
    public static @Nullable Object run(LogicalCall call, Retry retry, Exchange exchange) throws Throwable {
        call.enter();
        try {
            return new CallLoop(call, exchange).run(retry.asyncContext());
        } finally {
            call.exit();
        }
    }

    private @Nullable Object run(Retry.AsyncContext<Object> retry) throws Throwable {
        Throwable before = call.lastFailure();
        if (before != null && call.deadline().isOver()) {
            // A retry outside of ours came back after the deadline.
            throw before;
        }
        while (true) {
            Ended ended = attempt(call.nextAttempt());
            if (ended.outcome.leavesDoubt(ended.seen)) {
                call.doubt();
            }
            if (ended.outcome == Outcome.SUCCESS) {
                call.budget().refund();
                completed(retry);
                return answer(ended);
            }
            if (ended.outcome == Outcome.FINAL && ended.thrown == null) {
                completed(retry);
                return end(ended);
            }
            if (ended.thrown instanceof Error error) {
                call.ended(Result.FAILED, error);
                throw error;
            }
            RetryDecision decision =
                    new RetryDecision(ended.outcome, ended.seen, call.isRepeatable(), call.deadline(), call.budget());
            Throwable failure = failure(ended);
            long wait = decision.waitBeforeNext(retry, failure);
            if (wait < 0) {
                return end(ended);
            }
            ended = letGo(ended, failure);
            if (!sleep(wait)) {
                return end(ended);
            }
        }
    }

    /** One attempt, with as many requests as it takes until the first attempt's execution is over. */
    private Ended attempt(int number) {
        long backoff = FIRST_POLL_MILLIS;
        while (true) {
            Ended ended = send(number);
            if (ended.outcome != Outcome.IN_PROGRESS) {
                return ended;
            }
            call.doubt();
            long asked = RetryAfter.millis(ended.seen, Instant.now()).orElse(0);
            long wait = asked > 0 ? asked : backoff;
            if (!call.deadline().outlasts(wait)) {
                return ended;
            }
            ended = letGo(ended, failure(ended));
            if (!sleep(wait)) {
                return ended;
            }
            backoff = Math.min(LONGEST_POLL_MILLIS, backoff * 2);
        }
    }

    /** Before a wait: an answer that is not read holds a connection, which others may need. What is left of it is its failure. */
    private Ended letGo(Ended ended, Throwable failure) {
        exchange.discard(ended.value);
        return new Ended(ended.outcome, ended.seen, null, failure);
    }

    private Ended send(int number) {
        Observation seen = new Observation();
        Object value = null;
        Throwable thrown = null;
        try {
            value = exchange.send(number, seen);
        } catch (Throwable t) {
            thrown = t;
            if (isInterruption(t)) {
                Thread.currentThread().interrupt();
            }
        }
        Outcome outcome = Outcome.of(seen, thrown, call.config().statuses());
        if (outcome == Outcome.IN_PROGRESS && call.id() == null) {
            outcome = Outcome.REFUSED;
        }
        return new Ended(outcome, seen, value, thrown);
    }

    private static void completed(Retry.AsyncContext<Object> retry) {
        try {
            retry.onComplete();
        } catch (RuntimeException e) {
            LOG.warn("An event consumer of a Retry threw; the call is not affected", e);
        }
    }

    /** Nothing more will be tried: an answer, a refusal, the usual exception, or the unknown. */
    private @Nullable Object end(Ended ended) throws Throwable {
        boolean unknown = call.id() != null
                && ((call.isInDoubt() && !ended.outcome.settles(ended.seen))
                        || ended.seen.refusal().orElse(null) == Refusal.OUTCOME_UNKNOWN);
        if (unknown) {
            Throwable cause = failure(ended);
            exchange.discard(ended.value);
            return fail(Result.UNKNOWN, exchange.unknown(ended.seen, cause));
        }
        Refusal refusal = ended.seen.refusal().orElse(null);
        if (refusal != null) {
            Throwable cause = failure(ended);
            exchange.discard(ended.value);
            return fail(Result.REFUSED, exchange.refused(refusal, ended.seen, cause));
        }
        if (ended.thrown != null) {
            return fail(Result.FAILED, ended.thrown);
        }
        return answer(ended);
    }

    private @Nullable Object answer(Ended ended) {
        call.ended(ended.seen.isReplayed() ? Result.REPLAYED : Result.SUCCEEDED, null);
        return ended.value;
    }

    private @Nullable Object fail(Result result, Throwable failure) throws Throwable {
        call.ended(result, failure);
        throw failure;
    }

    private Throwable failure(Ended ended) {
        return ended.thrown != null ? ended.thrown : exchange.failureOf(ended.value);
    }

    private static boolean isInterruption(Throwable thrown) {
        Throwable cause = thrown;
        for (int i = 0; cause != null && i < 20; i++) {
            if (cause instanceof InterruptedException) {
                return true;
            }
            cause = cause.getCause();
        }
        return false;
    }

    /** False if interrupted; the flag is kept. */
    private static boolean sleep(long millis) {
        try {
            Thread.sleep(millis);
            return true;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }
}
