package io.idempotence.client.internal.call;

import io.github.resilience4j.retry.Retry;
import io.idempotence.client.IdempotenceClientAttemptEvent.Outcome;
import io.idempotence.client.IdempotenceClientEvent.Result;
import io.idempotence.client.internal.http.Observation;
import io.idempotence.client.internal.http.RetryAfter;
import io.idempotence.client.internal.scope.ScopeHistory.HandlerFailure;
import io.idempotence.http.Refusal;
import java.io.IOException;
import java.time.Instant;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ThreadLocalRandom;
import org.jspecify.annotations.Nullable;

/**
 * The state machine of a logical call: after each request it decides the next step (promise P7). It neither waits nor sends, so a blocking
 * loop and an asynchronous one share it. Not thread-safe: steps must not overlap.
 */
final class CallStateMachine {
    private static final long FIRST_POLL_MILLIS = 50;
    private static final long LONGEST_POLL_MILLIS = 1000;

    private final LogicalCall call;
    private final Retry.AsyncContext<Object> retry;
    private final ClientAdapter adapter;
    private int attempt;
    private long attemptBeganAt;
    private int requestsBefore;
    private boolean polling;
    private int polls;
    private long waitedNanos;
    private long nextPollMillis = FIRST_POLL_MILLIS;
    private @Nullable RequestEnd last;

    CallStateMachine(LogicalCall call, Retry retry, ClientAdapter adapter) {
        this.call = call;
        this.retry = retry.asyncContext();
        this.adapter = adapter;
    }

    /** The next step. */
    sealed interface NextStep {
        /** Send a request after a wait. */
        record Send(long afterMillis) implements NextStep {}

        /** End with a value. */
        record Return(@Nullable Object value) implements NextStep {}

        /** End with an exception. */
        record Throw(Throwable thrown) implements NextStep {}
    }

    /** The first step. */
    NextStep begin() {
        if (call.hasResponded()) {
            // A layer dropped that response, and this run may get none.
            call.doubt();
        }
        Throwable before = call.lastFailure();
        // A retry around this one may call again after the deadline.
        return before != null && !call.deadline().outlasts(0) ? new NextStep.Throw(before) : new NextStep.Send(0);
    }

    /** Whether the wait before a further request took too long. A request would then only add doubt. */
    boolean isTooLate() {
        return last != null && !call.deadline().outlasts(0);
    }

    /** The number of the attempt to which the next request belongs. */
    int attemptToSend() {
        if (polling) {
            polls++;
            waitedNanos = System.nanoTime() - attemptBeganAt;
        } else {
            attempt = call.nextAttempt();
            attemptBeganAt = System.nanoTime();
            requestsBefore = call.requests();
            nextPollMillis = FIRST_POLL_MILLIS;
            polls = 0;
            waitedNanos = 0;
        }
        return attempt;
    }

    /** The step after a request. */
    NextStep after(Observation seen, @Nullable Object value, @Nullable Throwable thrown) {
        if (thrown != null && !call.isPlain() && seen.isSuccess() && adapter.meansNotSent(thrown)) {
            // Code above the HTTP client lost the response.
            seen.bodyFailed(thrown instanceof IOException e ? e : new IOException(thrown));
        }
        RequestEnd ended = RequestEnd.of(seen, value, thrown, call.config().statuses(), call.isInDoubt());
        if (call.isPlain()) {
            attempted(ended, -1);
            return thrown == null ? respond(ended) : fail(Result.FAILED, thrown);
        }
        if (ended.leavesDoubt()) {
            call.doubt();
        }
        if (ended.settles()) {
            call.responded();
        }
        if (seen.isOfAFailedHandler() && !call.isInDoubt()) {
            boolean isReturned = thrown == null && adapter.returnsErrors();
            call.failed(new HandlerFailure(seen, isReturned ? null : failure(ended)));
        }
        return ended.outcome() == Outcome.IN_PROGRESS ? poll(ended) : endAttempt(ended);
    }

    /** The step after an interrupted wait: nothing more is sent. */
    NextStep stop() {
        RequestEnd ended = last;
        if (ended == null) {
            throw new IllegalStateException(
                    "stop() was called before a request had ended; expected a call that waits after a request");
        }
        NextStep next = end(ended);
        if (polling) {
            attempted(ended, -1);
        }
        return next;
    }

    /**
     * Ends a call whose caller no longer waits: nothing more is sent, and only the listener is notified.
     *
     * @param betweenRequests whether every request has ended, so that the call is in doubt only if one of them left it in doubt
     */
    void abandon(boolean betweenRequests) {
        boolean mayHaveBeen = (!betweenRequests && call.requests() > 0) || call.isInDoubt();
        call.ended(call.id() != null && mayHaveBeen ? Result.UNKNOWN : Result.FAILED, new CancellationException());
    }

    /** The step while the first attempt's execution still runs. A poll takes time but does not count as an attempt. */
    private NextStep poll(RequestEnd ended) {
        // The delay is not spread, because each caller waits for an execution of its own, and every millisecond counts.
        long asked = RetryAfter.jittered(
                ended.seen(),
                Instant.now(),
                0,
                call.deadline(),
                ThreadLocalRandom.current().nextDouble());
        long wait = asked > 0 ? asked : nextPollMillis;
        if (Thread.currentThread().isInterrupted() || !call.deadline().outlasts(wait)) {
            return endAttempt(ended);
        }
        nextPollMillis = Math.min(LONGEST_POLL_MILLIS, nextPollMillis * 2);
        return sendAfter(wait, true, ended);
    }

    private NextStep endAttempt(RequestEnd ended) {
        NextStep next = retry(ended);
        attempted(ended, next instanceof NextStep.Send send ? send.afterMillis() : -1);
        return next;
    }

    private void attempted(RequestEnd ended, long waitMillis) {
        long took = System.nanoTime() - attemptBeganAt;
        call.attempted(
                attempt,
                ended,
                call.requests() - requestsBefore,
                polls,
                isOfAnEarlierAttempt(ended.seen()) ? took : waitedNanos,
                took,
                waitMillis);
    }

    /** Whether a response results from an earlier attempt. The server half may have held the request until that attempt ended. */
    private static boolean isOfAnEarlierAttempt(Observation seen) {
        return seen.isReplayed() || seen.refusal().orElse(null) == Refusal.IN_PROGRESS;
    }

    private NextStep retry(RequestEnd ended) {
        if (ended.outcome() == Outcome.SUCCEEDED) {
            call.budget().refund();
            completed();
            return respond(ended);
        }
        if (ended.outcome() == Outcome.FINAL && ended.thrown() == null) {
            completed();
            return end(ended);
        }
        if (ended.thrown() instanceof Error error) {
            return fail(isUnknown(ended) ? Result.UNKNOWN : Result.FAILED, error);
        }
        RetryDecision decision =
                new RetryDecision(ended.outcome(), ended.seen(), call.deadline(), call.budget(), call.log());
        long wait = decision.waitBeforeNext(retry, failure(ended));
        return wait < 0 ? end(ended) : sendAfter(wait, false, ended);
    }

    /**
     * The step that sends again after a wait. The response is discarded first, because an unread response holds a connection that others
     * may need during the wait.
     */
    private NextStep sendAfter(long wait, boolean poll, RequestEnd ended) {
        last = withoutBody(ended);
        call.discard(adapter, ended.value());
        polling = poll;
        return new NextStep.Send(wait);
    }

    private RequestEnd withoutBody(RequestEnd ended) {
        Object response = ended.thrown() == null ? adapter.bodiless(ended.seen()) : null;
        return new RequestEnd(ended.outcome(), ended.seen(), response, response == null ? failure(ended) : null);
    }

    private void completed() {
        try {
            retry.onComplete();
        } catch (Throwable e) {
            // Also an Error: a metrics library of the wrong version must not take a payment's response away.
            call.log().warn("an event consumer of a Retry threw; the call is not affected", e);
        }
    }

    /**
     * The step without a further attempt. The first of these that applies is the end of the call, whatever the HTTP client:
     *
     * <ol>
     *   <li>the unknown outcome, if the call is in doubt;
     *   <li>the last failure of the handler, which may have taken effect, if this end shows no more of the operation;
     *   <li>this end: a refusal, the original exception, or the response.
     * </ol>
     */
    private NextStep end(RequestEnd ended) {
        if (isUnknown(ended)) {
            Throwable cause = failure(ended);
            call.discard(adapter, ended.value());
            return fail(Result.UNKNOWN, adapter.unknown(ended.seen(), cause));
        }
        HandlerFailure before = call.handlerFailure();
        if (before != null && ended.leavesFailureOpen()) {
            Throwable later = failure(ended);
            call.discard(adapter, ended.value());
            if (before.thrown() != null) {
                return fail(Result.FAILED, call.orHandlerFailure(later));
            }
            Object response = adapter.bodiless(before.seen());
            return response == null
                    ? fail(Result.UNKNOWN, adapter.unknown(ended.seen(), later))
                    : respond(new RequestEnd(Outcome.FINAL, before.seen(), response, null));
        }
        Refusal refusal = ended.seen().refusal().orElse(null);
        if (refusal != null) {
            Throwable cause = failure(ended);
            call.discard(adapter, ended.value());
            return fail(Result.REFUSED, adapter.refused(refusal, ended.seen(), cause));
        }
        if (ended.thrown() != null) {
            return fail(Result.FAILED, ended.thrown());
        }
        return respond(ended);
    }

    private boolean isUnknown(RequestEnd ended) {
        return call.id() != null
                && ((call.isInDoubt() && !ended.settles())
                        || ended.seen().refusal().orElse(null) == Refusal.OUTCOME_UNKNOWN);
    }

    private NextStep respond(RequestEnd ended) {
        Result first = ended.outcome() == Outcome.SUCCEEDED ? Result.SUCCEEDED : Result.FAILED;
        call.ended(ended.seen().isReplayed() ? Result.REPLAYED : first, null);
        return new NextStep.Return(ended.value());
    }

    private NextStep fail(Result result, Throwable failure) {
        call.ended(result, failure);
        return new NextStep.Throw(failure);
    }

    private Throwable failure(RequestEnd ended) {
        return ended.thrown() != null ? ended.thrown() : adapter.failureOf(ended.seen(), ended.value());
    }
}
