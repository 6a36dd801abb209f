package io.idempotence.client;

import io.idempotence.IdempotenceId;
import io.idempotence.InboundRequest;
import io.idempotence.client.internal.scope.CallScope;
import io.idempotence.client.internal.scope.CallerContext;
import java.time.Instant;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The scope of one logical call. It determines the ID of the protected call made inside it.
 *
 * <p>A retry above the client keeps its ID this way (promise P1): a consumed message, {@code @Retry} on business code.
 *
 * <pre>{@code
 * Order order = IdempotenceScope.with(message.id(), () -> orders.create(draft));
 * }</pre>
 *
 * <p><b>One call.</b> The first protected call inside takes the ID. The same method of the same client called again is the caller's retry
 * and sends the ID again. It starts in doubt unless the first call certainly was not executed. Any other protected call inside is an
 * {@link IllegalStateException}, because two calls never share an ID (promise P1). Give it a scope of its own. Calls that carry no ID
 * (GET, or PUT without {@code @Idempotent}) do not affect the scope. The caller's own header argument overrides the scope's ID, but not
 * that of {@link #resume}.
 *
 * <p><b>Scopes compose.</b> The ID of the innermost scope applies until that scope ends. Every {@link #saving saver} around the call gets
 * the ID in effect. A call inside {@link #resume} starts in doubt. A call inside it with another ID throws an {@link
 * IllegalStateException}, and nothing is sent.
 *
 * <p>With OkHttp, each {@link IllegalStateException} of this class that a call causes is the cause of an {@link java.io.IOException}.
 *
 * <p><b>One thread.</b> A scope applies to the calling thread, from entry to exit, and to work {@link #carried(Runnable) carried} to
 * other threads. It does not apply to calls made <em>by</em> a call, such as an interceptor that fetches a token, nor to the tasks
 * that a worker of a fork-join pool runs while it waits inside the scope.
 */
public final class IdempotenceScope {
    private IdempotenceScope() {}

    /**
     * Work that may throw.
     *
     * @param <T> what it returns
     * @param <X> what it throws
     */
    @FunctionalInterface
    public interface Work<T extends @Nullable Object, X extends Throwable> {
        /**
         * Runs the work.
         *
         * @return the result
         * @throws X if it fails
         */
        T run() throws X;
    }

    /**
     * Runs work whose logical call carries {@code id}.
     *
     * <p>The age of the ID is not checked. Once the server half has forgotten it, the call is executed again, so a restarted job uses {@link
     * #resume}.
     *
     * @param id the ID
     * @param work makes the call
     * @param <T> what it returns
     * @param <X> what it throws
     * @return what {@code work} returns
     * @throws X what {@code work} throws
     * @throws IllegalStateException inside {@link #resume} of another ID; {@code work} is not run
     */
    public static <T extends @Nullable Object, X extends Throwable> T with(IdempotenceId id, Work<T, X> work) throws X {
        return CallScope.inside(CallScope.with(Objects.requireNonNull(id, "id")), work::run);
    }

    /**
     * Runs work whose logical call carries {@code id}. The age of the ID is not checked, as in {@link #with(IdempotenceId, Work)}.
     *
     * @param id the ID
     * @param work makes the call
     * @throws IllegalStateException inside {@link #resume} of another ID; {@code work} is not run
     */
    public static void with(IdempotenceId id, Runnable work) {
        Work<Boolean, RuntimeException> returning = () -> {
            work.run();
            return true;
        };
        with(id, returning);
    }

    /**
     * Runs work whose logical call gets the ID that it would get without this scope. The ID is saved before anything is sent.
     *
     * <p>This is for a job that must not lose its ID in a crash. {@code saver} persists the ID, and the restarted job calls {@link
     * #resume} with it. The saver gets the ID that is sent: a new one, that of a scope around or inside this one, or the caller's own
     * header argument.
     *
     * <p>The saver runs once, before the first request, in the thread in which the call takes its ID. That is the calling thread, with
     * two exceptions: OkHttp's {@code enqueue} uses a thread of its dispatcher, perhaps after this method has returned, and a layer
     * may hand Feign calls to other threads. So a saver must not rely on what is bound to a thread, such as a transaction.
     *
     * @param saver persists the ID. If it throws, nothing is sent and the call ends with that exception, with OkHttp as the cause of an
     *     {@link java.io.IOException}. The same call made again in this scope has the same ID, and the saver runs again
     * @param work makes the call; a second call with another ID is an {@link IllegalStateException}, and it is not sent
     * @param <T> what it returns
     * @param <X> what it throws
     * @return what {@code work} returns
     * @throws X what {@code work} throws
     */
    public static <T extends @Nullable Object, X extends Throwable> T saving(
            Consumer<? super IdempotenceId> saver, Work<T, X> work) throws X {
        return CallScope.inside(CallScope.saving(Objects.requireNonNull(saver, "saver")), work::run);
    }

    /**
     * Makes a call again under its ID, to find out its outcome. Refuses an ID that the server half may have forgotten.
     *
     * <p>The ID is that of an {@link OutcomeUnknown}, or one that {@link #saving} persisted before a crash. The call must be the same: the
     * same method of the same client with the same arguments. Otherwise the server half refuses it as {@code key-reused}. If the first call
     * was executed, its response comes back. If not, the call is executed now. Either way it is executed once.
     *
     * <p>The call starts in doubt. It ends with an {@link OutcomeUnknown} again if nothing shows the outcome of the first one: no
     * connection, 401, 503, most refusals, an interceptor that throws, a body that cannot be written, or a circuit breaker of Resilience4j
     * around a Feign client.
     *
     * <p>The call must take its ID in this thread, or in work {@link #carried(Runnable) carried} from it. Feign calls do, including those
     * that return a future, and so does OkHttp's {@code execute}. Around OkHttp's {@code enqueue}, use {@link #with(IdempotenceId, Work)}.
     * A call inside {@code with} does not start in doubt. If it is not sent, that does not show what became of the first call, and an ID
     * that the server half may have forgotten is not refused.
     *
     * <p>Code in front of the client half may throw before it reaches the client half: an OkHttp interceptor that was added earlier, a
     * layer around the Feign proxy, an {@code Error}. The call then ends with that exception, which does not show the outcome of the first
     * call.
     *
     * @param id the call's ID
     * @param firstSentAt when the call was first sent, or shortly before: {@link OutcomeUnknown#firstSentAt()}, or the time at which the ID
     *     was saved
     * @param call makes the same call again, and no other that carries an ID
     * @param <T> what it returns
     * @param <X> what it throws
     * @return what {@code call} returns
     * @throws X what {@code call} throws; an {@link OutcomeUnknown} if the outcome is still unknown
     * @throws IllegalStateException inside a {@code resume} of another ID, or if {@code call} returned without making a call that carries
     *     an ID. The call itself throws it, and sends nothing, if it has another ID, or if {@link
     *     IdempotenceClientConfig#serverRetention()} will be over before its deadline. In the latter case the server half may have
     *     forgotten the ID and would execute the call again, so check the business data instead. With OkHttp, what the call throws is the
     *     cause of an {@link java.io.IOException}
     */
    public static <T extends @Nullable Object, X extends Throwable> T resume(
            IdempotenceId id, Instant firstSentAt, Work<T, X> call) throws X {
        CallScope scope = CallScope.resuming(
                Objects.requireNonNull(id, "id"), Objects.requireNonNull(firstSentAt, "firstSentAt"));
        T result = CallScope.inside(scope, Objects.requireNonNull(call, "call")::run);
        if (!scope.wasAsked()) {
            throw new IllegalStateException("resume found no call that carries an ID in this thread, and expected one;"
                    + " make the same call again inside it, with the same client");
        }
        return result;
    }

    /**
     * Carries this thread's scope and {@link InboundRequest} to the thread that runs {@code task}.
     *
     * @param task any task
     * @return a task that runs {@code task} in the scope and request of the thread that called this method
     */
    public static Runnable carried(Runnable task) {
        Objects.requireNonNull(task, "task");
        CallerContext caller = CallerContext.current();
        return () -> caller.<Boolean, RuntimeException>during(() -> {
            task.run();
            return true;
        });
    }

    /**
     * Carries this thread's scope and {@link InboundRequest} to the thread that runs {@code task}.
     *
     * @param task any task
     * @param <T> what it returns
     * @return a task that runs {@code task} in the scope and request of the thread that called this method
     */
    public static <T extends @Nullable Object> Callable<T> carried(Callable<T> task) {
        Objects.requireNonNull(task, "task");
        CallerContext caller = CallerContext.current();
        return () -> caller.during(task::call);
    }

    /**
     * Carries this thread's scope and {@link InboundRequest} to the thread that runs {@code task}. For libraries that retry or time
     * futures, such as {@code Retry.decorateCompletionStage}.
     *
     * @param task starts the work that completes the stage
     * @param <T> the stage's result
     * @param <S> the stage
     * @return a supplier that runs {@code task} in the scope and request of the thread that called this method
     */
    public static <T extends @Nullable Object, S extends CompletionStage<T>> Supplier<S> carried(Supplier<S> task) {
        Objects.requireNonNull(task, "task");
        CallerContext caller = CallerContext.current();
        return () -> caller.<S, RuntimeException>during(task::get);
    }

    /**
     * An executor whose tasks run in the scope and {@link InboundRequest} of the thread that submits them, for example for {@code
     * CompletableFuture.supplyAsync}, on pooled or virtual threads.
     *
     * @param executor runs the tasks
     * @return an executor that wraps {@code executor}
     */
    public static Executor carrying(Executor executor) {
        Objects.requireNonNull(executor, "executor");
        return task -> executor.execute(carried(task));
    }
}
