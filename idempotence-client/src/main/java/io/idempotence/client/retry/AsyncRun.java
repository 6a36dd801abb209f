package io.idempotence.client.retry;

import io.idempotence.client.retry.CallSteps.Step;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/** The attempts of one logical call, one after another, with nobody waiting. */
final class AsyncRun {
    private final LogicalCall call;
    private final CallSteps steps;
    private final Exchange exchange;
    private final Executor executor;
    private final CompletableFuture<@Nullable Object> result = new CompletableFuture<>();
    private final AtomicBoolean over = new AtomicBoolean();
    private volatile @Nullable CompletableFuture<?> running;

    AsyncRun(LogicalCall call, CallSteps steps, Exchange exchange, Executor executor) {
        this.call = call;
        this.steps = steps;
        this.exchange = exchange;
        this.executor = executor;
    }

    CompletableFuture<@Nullable Object> start() {
        call.enter();
        // Whoever completes the result before us, by cancelling or by a timeout of his own, does not want more
        // attempts.
        result.whenComplete((value, thrown) -> {
            if (over.compareAndSet(false, true)) {
                steps.abandon();
                call.exit();
                abort();
            }
        });
        guarded(() -> go(steps.begin(), true));
        return result;
    }

    private void go(Step step, boolean first) {
        if (step instanceof Step.Send send) {
            if (first) {
                send();
            } else {
                sendAfter(send.afterMillis());
            }
        } else if (step instanceof Step.Throw end) {
            end(null, end.thrown());
        } else {
            end(((Step.Return) step).value(), null);
        }
    }

    private void sendAfter(long millis) {
        CompletableFuture.delayedExecutor(millis, TimeUnit.MILLISECONDS, Runnable::run)
                .execute(() -> guarded(() -> {
                    try {
                        executor.execute(() -> guarded(this::send));
                    } catch (RejectedExecutionException e) {
                        go(steps.stop(), false);
                    }
                }));
    }

    private void send() {
        if (over.get()) {
            return;
        }
        Observation seen = new Observation();
        CompletableFuture<?> answer;
        try {
            answer = future(exchange.send(steps.attemptToSend(), seen));
        } catch (Throwable thrown) {
            go(steps.after(seen, null, thrown), false);
            return;
        }
        running = answer;
        if (over.get()) {
            abort();
        }
        answer.whenComplete((value, thrown) -> guarded(() -> {
            if (over.get()) {
                exchange.discard(value);
            } else {
                go(steps.after(seen, value, thrown == null ? null : unwrapped(thrown)), false);
            }
        }));
    }

    private void abort() {
        CompletableFuture<?> answer = running;
        if (answer != null) {
            answer.cancel(true);
        }
    }

    private void end(@Nullable Object value, @Nullable Throwable thrown) {
        if (!over.compareAndSet(false, true)) {
            exchange.discard(value);
            return;
        }
        try {
            call.exit();
        } finally {
            boolean wanted = thrown == null ? result.complete(value) : result.completeExceptionally(thrown);
            if (!wanted) {
                exchange.discard(value);
            }
        }
    }

    /** In a thread of others, where an exception would be lost and the caller would wait for ever. */
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
