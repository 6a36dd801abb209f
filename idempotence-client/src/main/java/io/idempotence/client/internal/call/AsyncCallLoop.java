package io.idempotence.client.internal.call;

import io.idempotence.client.internal.call.CallStateMachine.NextStep;
import io.idempotence.client.internal.http.CallThreads;
import io.idempotence.client.internal.http.Observation;
import java.net.SocketTimeoutException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** The loop over the attempts of one logical call that blocks no thread. */
final class AsyncCallLoop {
    /** The time after the deadline that an HTTP client or the watchdog has to end a request. */
    private static final long GRACE_MILLIS = 250;

    /** The value of a stage that nothing else will complete. */
    private record LostResponse(SocketTimeoutException why) {}

    private final LogicalCall call;
    private final CallStateMachine steps;
    private final ClientAdapter adapter;
    private final Executor executor;
    private final CallThreads threads;
    private final CompletableFuture<@Nullable Object> result = new CompletableFuture<>();
    private final AtomicBoolean over = new AtomicBoolean();
    private volatile @Nullable Observation sending;
    private volatile @Nullable CompletableFuture<?> running;
    private volatile boolean waiting;

    AsyncCallLoop(
            LogicalCall call, CallStateMachine steps, ClientAdapter adapter, Executor executor, CallThreads threads) {
        this.call = call;
        this.steps = steps;
        this.adapter = adapter;
        this.executor = executor;
        this.threads = threads;
    }

    CompletableFuture<@Nullable Object> start() {
        call.enter();
        // A caller that completes the result first, by cancelling or by a timeout, wants no more attempts.
        result.whenComplete((value, thrown) -> {
            if (over.compareAndSet(false, true)) {
                steps.abandon(waiting);
                call.exit();
                abort();
            }
        });
        guarded(() -> go(steps.begin(), true));
        return result;
    }

    private void go(NextStep step, boolean first) {
        if (step instanceof NextStep.Send send) {
            if (first) {
                send(true);
            } else {
                sendAfter(send.afterMillis());
            }
        } else if (step instanceof NextStep.Throw end) {
            end(null, end.thrown());
        } else {
            end(((NextStep.Return) step).value(), null);
        }
    }

    private void sendAfter(long millis) {
        waiting = true;
        CompletableFuture<@Nullable Object> turn = new CompletableFuture<>();
        whenEnded(turn, (lost, thrown) -> {
            if (over.get()) {
                return;
            }
            if (lost == null && thrown == null && !steps.isTooLate()) {
                send(false);
            } else {
                go(steps.stop(), false);
            }
        });
        try {
            endAfterTheDeadline(turn);
            // The executor may run or hold its tasks in the thread that submits them.
            threads.later(millis, () -> threads.runInBackground(() -> begin(turn)));
        } catch (OutOfMemoryError noThread) {
            turn.completeExceptionally(noThread);
        }
    }

    private void begin(CompletableFuture<@Nullable Object> turn) {
        try {
            executor.execute(() -> turn.complete(null));
        } catch (Throwable e) {
            turn.completeExceptionally(e);
        }
    }

    private void send(boolean first) {
        // Before all else: a caller that gives up from now on must not assume that this request is never sent.
        waiting = false;
        Observation seen = new Observation();
        sending = seen;
        if (over.get()) {
            return;
        }
        int attempt = steps.attemptToSend();
        CompletableFuture<@Nullable Object> end = new CompletableFuture<>();
        whenEnded(end, (value, thrown) -> {
            if (over.get()) {
                call.discard(adapter, value);
                return;
            }
            go(value instanceof LostResponse lost ? lost(seen, lost.why) : after(seen, value, thrown), false);
        });
        if (first) {
            // The timer starts afterwards, because sending decides whether the call carries an ID, and so has a
            // deadline.
            send(attempt, seen, end);
            endInTime(end);
        } else {
            // The timer starts first, because an encoder or interceptor may never return.
            endInTime(end);
            send(attempt, seen, end);
        }
    }

    private void send(int attempt, Observation seen, CompletableFuture<@Nullable Object> end) {
        CompletableFuture<?> response;
        try {
            response = future(call.send(adapter, attempt, seen));
        } catch (Throwable thrown) {
            end.completeExceptionally(thrown);
            return;
        }
        running = response;
        if (over.get()) {
            abort();
        }
        response.whenComplete((value, thrown) -> {
            boolean awaited = thrown == null ? end.complete(value) : end.completeExceptionally(thrown);
            if (!awaited) {
                call.discard(adapter, value);
            }
        });
    }

    private void endInTime(CompletableFuture<@Nullable Object> end) {
        try {
            endAfterTheDeadline(end);
        } catch (OutOfMemoryError noThread) {
            // Nothing would end the call if this request did not end.
            SocketTimeoutException why = new SocketTimeoutException("no thread can end the request at the deadline");
            why.initCause(noThread);
            end.complete(new LostResponse(why));
        }
    }

    private NextStep after(Observation seen, @Nullable Object value, @Nullable Throwable thrown) {
        return steps.after(seen, value, thrown == null ? null : unwrapped(thrown));
    }

    /**
     * The step after a request that did not end by the deadline. It is decided before the request is cancelled, because a cancelled request
     * would look like another failure. Whatever has come of its response so far is not the result.
     */
    private NextStep lost(Observation seen, SocketTimeoutException why) {
        if (seen.isOpen() || seen.status() != 0) {
            seen.failed(why);
        }
        NextStep next = steps.after(seen, null, adapter.timedOut(why));
        abort();
        return next;
    }

    /** Completes a stage after the deadline: an HTTP client or executor may lose its task, and no waiting thread would notice. */
    private void endAfterTheDeadline(CompletableFuture<@Nullable Object> stage) {
        if (!call.isPlain()) {
            Future<?> timeout = threads.later(
                    call.deadline().millisLeft() + GRACE_MILLIS,
                    () -> threads.runInBackground(() -> stage.complete(new LostResponse(new SocketTimeoutException(
                            "the deadline of the call is over, and the HTTP client has not ended its request")))));
            stage.whenComplete((value, thrown) -> timeout.cancel(false));
        }
    }

    private void whenEnded(
            CompletableFuture<@Nullable Object> stage, BiConsumer<@Nullable Object, @Nullable Throwable> next) {
        stage.whenComplete((value, thrown) -> guarded(() -> next.accept(value, thrown)));
    }

    /** Ends the running request. One that is still being made, by an encoder or an interceptor, does not leave. */
    private void abort() {
        Observation seen = sending;
        if (seen != null) {
            seen.giveUp();
        }
        CompletableFuture<?> response = running;
        if (response != null) {
            response.cancel(true);
        }
    }

    private void end(@Nullable Object value, @Nullable Throwable thrown) {
        if (!over.compareAndSet(false, true)) {
            call.discard(adapter, value);
            return;
        }
        try {
            call.exit();
        } finally {
            boolean wanted = thrown == null ? result.complete(value) : result.completeExceptionally(thrown);
            if (!wanted) {
                call.discard(adapter, value);
            }
        }
    }

    /** Runs work in a thread of another library, where an exception would be lost and the caller would wait without end. */
    private void guarded(Runnable work) {
        try {
            work.run();
        } catch (Throwable thrown) {
            end(null, thrown);
        }
    }

    private static CompletableFuture<?> future(@Nullable Object value) {
        return value instanceof CompletionStage<?> stage
                ? stage.toCompletableFuture()
                : CompletableFuture.completedFuture(value);
    }

    private static Throwable unwrapped(Throwable thrown) {
        Throwable cause = thrown;
        while (cause instanceof CompletionException && cause.getCause() != null) {
            cause = cause.getCause();
        }
        return cause;
    }
}
