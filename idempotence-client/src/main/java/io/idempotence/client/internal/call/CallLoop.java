package io.idempotence.client.internal.call;

import io.github.resilience4j.retry.Retry;
import io.idempotence.client.internal.call.CallStateMachine.NextStep;
import io.idempotence.client.internal.http.CallThreads;
import io.idempotence.client.internal.http.Observation;
import io.idempotence.internal.Causes;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/** The loop over the attempts of a logical call. It ends with a response, a refusal, or no further attempt (promise P7). */
public final class CallLoop {
    private CallLoop() {}

    /**
     * Runs the loop in this thread.
     *
     * @return what the last attempt returned
     * @throws Throwable the end of a call without a value
     */
    public static @Nullable Object run(LogicalCall call, Retry retry, ClientAdapter adapter) throws Throwable {
        call.enter();
        try {
            CallStateMachine steps = new CallStateMachine(call, retry, adapter);
            NextStep step = steps.begin();
            while (step instanceof NextStep.Send send) {
                boolean goesOn = send.afterMillis() == 0 || adapter.pause(send.afterMillis());
                step = goesOn && !steps.isTooLate() ? send(call, steps, adapter) : steps.stop();
            }
            if (step instanceof NextStep.Throw end) {
                throw end.thrown();
            }
            return ((NextStep.Return) step).value();
        } finally {
            call.exit();
        }
    }

    /**
     * Runs the loop without a waiting thread. The first attempt starts in this thread, later ones in {@code executor}.
     *
     * @param adapter returns a {@link java.util.concurrent.CompletionStage}
     * @return a future with the result of the last attempt's stage. Completing or cancelling it cancels the running attempt, and no other
     *     follows
     */
    public static CompletableFuture<@Nullable Object> runAsync(
            LogicalCall call, Retry retry, ClientAdapter adapter, Executor executor, CallThreads threads) {
        return new AsyncCallLoop(call, new CallStateMachine(call, retry, adapter), adapter, executor, threads).start();
    }

    private static NextStep send(LogicalCall call, CallStateMachine steps, ClientAdapter adapter) {
        Observation seen = new Observation();
        Object value;
        try {
            value = call.send(adapter, steps.attemptToSend(), seen);
        } catch (Throwable thrown) {
            if (Causes.of(thrown).anyMatch(CallLoop::isInterruptOfThisThread)) {
                Thread.currentThread().interrupt();
            }
            return steps.after(seen, null, thrown);
        }
        return steps.after(seen, value, null);
    }

    /** Whether an exception cleared the flag of this thread. A pool also hands on the interrupts of its threads. */
    private static boolean isInterruptOfThisThread(Throwable thrown) {
        return thrown instanceof InterruptedException
                && Arrays.stream(thrown.getStackTrace())
                        .anyMatch(frame -> frame.getClassName().equals(CallLoop.class.getName()));
    }
}
