package io.idempotence.client;

import io.idempotence.IdempotenceId;
import io.idempotence.InboundRequest;
import io.idempotence.client.internal.scope.CallScope;
import io.idempotence.client.internal.scope.ThreadBound.Task;
import java.time.Instant;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Decides the ID of the logical call made inside it.
 *
 * <p>This is how a retry above the client keeps its ID (promise P1): a restarted job, a consumed message, {@code @Retry} on
 * business code.
 *
 * <pre>{@code
 * Order order = IdempotenceScope.with(job.id(), () -> orders.create(draft));
 * }</pre>
 *
 * <p>The first protected call inside takes the ID. The same method of the same client called again is the caller's retry and sends
 * the ID again; unless the first one certainly was not executed, the second begins in doubt. Any other protected call inside is an
 * {@link IllegalStateException}, as two calls never share an ID (promise P1): give it a scope of its own. Calls that carry no ID
 * (GET, or PUT without {@code @Idempotent}) leave the scope alone. The caller's own header argument comes before the scope's ID,
 * but not before that of {@link #resume}.
 *
 * <p>Scopes compose. The innermost ID counts and holds until the exit of its scope. Every {@link #saving saver} around the call gets
 * the ID in effect. A call inside {@link #resume} is in doubt; another ID inside it is an {@link IllegalStateException}, and nothing
 * is sent.
 *
 * <p>A scope holds for the calling thread, from entry to exit, and in other threads only for work that is {@link #carried(Runnable)
 * carried} there. Calls made <em>by</em> a call, such as an interceptor fetching a token, are outside.
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
         * Does it.
         *
         * @return the result
         * @throws X if it fails
         */
        T run() throws X;
    }

    /**
     * Does work whose logical call carries {@code id}.
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
     * Does work whose logical call carries {@code id}.
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
     * Does work whose logical call gets its ID as it would without this scope, and has it saved before anything is sent.
     *
     * <p>For a job that must not lose its ID in a crash: {@code saver} writes it where the job will find it, and the restarted job
     * calls {@link #resume} with it. The saver gets the ID that is sent: a new one, that of a scope around or inside this one, or the
     * caller's own header argument. It runs once, before the first request, in the thread in which the call takes its ID. That is the
     * calling thread, except for OkHttp's {@code enqueue} (a thread of its dispatcher, perhaps after this method has returned) and
     * below a layer that hands Feign calls to other threads. So a saver does not rely on what is bound to a thread, such as a
     * transaction.
     *
     * @param saver stores the ID; if it throws, nothing is sent and the call ends with what it threw, with OkHttp as the cause of
     *     an {@link java.io.IOException}. The same call made again in this scope has the same ID, and it is offered again
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
     * Asks later what became of a call: makes it again under the ID it had, if the server half can still know it.
     *
     * <p>The ID is that of an {@link OutcomeUnknown}, or one that {@link #saving} stored before a crash. The call must be the same:
     * the same method of the same client with the same arguments, or the server half refuses it as {@code key-reused}. If the first
     * one was executed, its response comes back; if not, it is executed now; in either case once.
     *
     * <p>What cannot tell about the first one (no connection, 401, 503, most refusals, an interceptor, a body that cannot be written,
     * a circuit breaker of Resilience4j around a Feign client) leaves it as unknown as it was: the call ends with an {@link
     * OutcomeUnknown} again, and not as it would if it were made for the first time.
     *
     * <p>The call is one that takes its ID in this thread, or in work {@link #carried(Runnable) carried} from it: a Feign call, also
     * one that returns a future, or OkHttp's {@code execute}. With OkHttp's {@code enqueue}, use {@link #with(IdempotenceId, Work)}.
     * That knows nothing of an earlier call, so two things are the caller's then: a failure to send says "not sent" of this request
     * only, and nothing is refused when the server half may have forgotten the ID.
     *
     * <p>What is in front of the client half and throws without asking it ends the call with what it threw: an OkHttp interceptor
     * that was added before, anything around the Feign proxy, an {@code Error}. That cannot tell about the first call either.
     *
     * @param id the call's ID
     * @param firstSentAt when it was first sent, or shortly before: {@link OutcomeUnknown#firstSentAt()}, or the time at which
     *     the ID was saved
     * @param call makes the same call again, and no other that carries an ID
     * @param <T> what it returns
     * @param <X> what it throws
     * @return what {@code call} returns
     * @throws X what {@code call} throws; again an {@link OutcomeUnknown} if the doubt is still there
     * @throws IllegalStateException inside a {@code resume} of another ID; if {@code call} returned without a call that carries an ID;
     *     or, from the call and with nothing sent, if it has another ID, or if {@link IdempotenceClientConfig#serverRetention()} will
     *     be over before its deadline: the server half may have forgotten the ID and would execute the call again, so only the
     *     business data can tell
     */
    public static <T extends @Nullable Object, X extends Throwable> T resume(
            IdempotenceId id, Instant firstSentAt, Work<T, X> call) throws X {
        CallScope scope = CallScope.resuming(
                Objects.requireNonNull(id, "id"), Objects.requireNonNull(firstSentAt, "firstSentAt"));
        T result = CallScope.inside(scope, Objects.requireNonNull(call, "call")::run);
        if (!scope.wasAsked()) {
            throw new IllegalStateException("nothing was asked: no call that carries an ID was made in this thread;"
                    + " make the same call again, with the same client");
        }
        return result;
    }

    /**
     * Carries this thread's scope, and its {@link InboundRequest}, to where {@code task} will run.
     *
     * @param task anything
     * @return the same in the scope and request of now
     */
    public static Runnable carried(Runnable task) {
        Objects.requireNonNull(task, "task");
        Carrier carrier = new Carrier();
        return () -> carrier.<Boolean, RuntimeException>run(() -> {
            task.run();
            return true;
        });
    }

    /**
     * Carries this thread's scope, and its {@link InboundRequest}, to where {@code task} will run.
     *
     * @param task anything
     * @param <T> what it returns
     * @return the same in the scope and request of now
     */
    public static <T extends @Nullable Object> Callable<T> carried(Callable<T> task) {
        Objects.requireNonNull(task, "task");
        Carrier carrier = new Carrier();
        return () -> carrier.run(task::call);
    }

    /**
     * Carries this thread's scope, and its {@link InboundRequest}, to where {@code task} will run, for what retries or times
     * futures, such as {@code Retry.decorateCompletionStage}.
     *
     * @param task begins what the stage is the end of
     * @param <T> what the stage comes to
     * @param <S> the stage
     * @return the same in the scope and request of now
     */
    public static <T extends @Nullable Object, S extends CompletionStage<T>> Supplier<S> carried(Supplier<S> task) {
        Objects.requireNonNull(task, "task");
        Carrier carrier = new Carrier();
        return () -> carrier.<S, RuntimeException>run(task::get);
    }

    /** The scope and the request of the thread that made it. */
    private static final class Carrier {
        private final @Nullable CallScope scope = CallScope.current();
        private final @Nullable InboundRequest request =
                InboundRequest.current().orElse(null);

        <T extends @Nullable Object, X extends Throwable> T run(Task<T, X> work) throws X {
            Runnable leave = request == null ? () -> {} : request.enter();
            try {
                return CallScope.inside(scope, work);
            } finally {
                leave.run();
            }
        }
    }

    /**
     * An executor whose tasks run in the scope and {@link InboundRequest} of the thread that hands them in, for example for {@code
     * CompletableFuture.supplyAsync}, on pooled or virtual threads.
     *
     * @param executor runs the tasks
     * @return hands them on
     */
    public static Executor carrying(Executor executor) {
        Objects.requireNonNull(executor, "executor");
        return task -> executor.execute(carried(task));
    }
}
