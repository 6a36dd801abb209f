package io.idempotence.client;

import io.idempotence.IdempotenceId;
import io.idempotence.InboundRequest;
import java.time.Instant;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.Executor;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Gives one ID to the logical call made inside it.
 *
 * <p>This is how a retry above the client keeps its ID (promise P1): a restarted job, a consumed message, {@code @Retry} on
 * business code.
 *
 * <pre>{@code
 * Order order = IdempotenceScope.with(job.id(), () -> orders.create(draft));
 * }</pre>
 *
 * <p>The first protected call inside takes the ID. The same method of the same client called again is the caller's retry and
 * sends the ID again; unless the first one certainly was not carried out, the second begins in that doubt; if a redirect took the
 * first one to another origin, which does not know the ID, the second is an {@link IllegalStateException}. Any other protected
 * call inside is an {@link IllegalStateException}, as two calls never share an ID (promise P1): give it a scope of its own. Calls
 * that carry no ID (GET, or PUT without {@code @Idempotent}) and calls with an own header argument leave the scope alone, unless
 * it is one of {@link IdempotenceClient#resume}.
 *
 * <p>A scope holds for the calling thread, from entry to exit, and in other threads only for work that is {@link #carried(Runnable)
 * carried} there. Scopes nest: the inner one
 * holds until its exit, then the outer one again. Calls made <em>by</em> a call, such as an interceptor fetching a token,
 * are outside.
 */
public final class IdempotenceScope {
    private static final ThreadLocal<@Nullable IdempotenceScope> CURRENT = new ThreadLocal<>();

    private final UnaryOperator<IdempotenceId> saver;
    private final @Nullable IdempotenceId given;
    private final boolean resumed;
    private final ReentrantLock taking = new ReentrantLock();
    private volatile @Nullable Taken taken;
    private final ScopeDoubt doubt;

    private IdempotenceScope(
            @Nullable IdempotenceId given,
            boolean resumed,
            @Nullable Instant resumedFrom,
            UnaryOperator<IdempotenceId> saver) {
        this.given = given;
        this.resumed = resumed;
        this.doubt = new ScopeDoubt(resumedFrom);
        this.saver = saver;
    }

    /** @param firstSentAt when a call that is in doubt was first sent under the ID */
    static IdempotenceScope resuming(IdempotenceId id, Instant firstSentAt) {
        return new IdempotenceScope(
                Objects.requireNonNull(id, "id"),
                true,
                Objects.requireNonNull(firstSentAt, "firstSentAt"),
                UnaryOperator.identity());
    }

    private record Taken(String call, IdempotenceId id) {}

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
     */
    public static <T extends @Nullable Object, X extends Throwable> T with(IdempotenceId id, Work<T, X> work) throws X {
        return inside(
                new IdempotenceScope(Objects.requireNonNull(id, "id"), false, null, UnaryOperator.identity()), work);
    }

    /**
     * Does work whose logical call carries {@code id}.
     *
     * @param id the ID
     * @param work makes the call
     */
    public static void with(IdempotenceId id, Runnable work) {
        Work<Boolean, RuntimeException> returning = () -> {
            work.run();
            return true;
        };
        with(id, returning);
    }

    /**
     * Does work whose logical call gets its ID as usual, and has it saved before anything is sent.
     *
     * <p>For a job that must not lose its ID in a crash: {@code saver} writes it where the job will find it, and the restarted job
     * calls {@link IdempotenceClient#resume} with it. The saver runs once, before the first request, in the thread in which the
     * call takes its ID. That is the calling thread, except for OkHttp's {@code enqueue} (a thread of its dispatcher, perhaps
     * after this method has returned) and below a layer that hands Feign calls to other threads. So a saver does not rely on what
     * is bound to a thread, such as a transaction.
     *
     * @param saver stores the ID; if it throws, nothing is sent and the call ends with what it threw, with OkHttp as the cause of
     *     an {@link java.io.IOException}
     * @param work makes the call
     * @param <T> what it returns
     * @param <X> what it throws
     * @return what {@code work} returns
     * @throws X what {@code work} throws
     */
    public static <T extends @Nullable Object, X extends Throwable> T saving(
            Consumer<? super IdempotenceId> saver, Work<T, X> work) throws X {
        Objects.requireNonNull(saver, "saver");
        return inside(
                new IdempotenceScope(null, false, null, id -> {
                    saver.accept(id);
                    return id;
                }),
                work);
    }

    /**
     * Carries this thread's scope, and its {@link InboundRequest}, to where {@code task} will run.
     *
     * @param task anything
     * @return the same in the scope and request of now
     */
    public static Runnable carried(Runnable task) {
        Objects.requireNonNull(task, "task");
        Callable<Boolean> carried = carried(() -> {
            task.run();
            return true;
        });
        return () -> {
            try {
                carried.call();
            } catch (RuntimeException e) {
                throw e;
            } catch (Exception e) {
                throw new IllegalStateException("a Runnable throws no checked exception", e);
            }
        };
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
        IdempotenceScope scope = CURRENT.get();
        InboundRequest request = InboundRequest.current().orElse(null);
        return () -> {
            Runnable leave = request == null ? () -> {} : request.enter();
            try {
                return inside(scope, task::call);
            } finally {
                leave.run();
            }
        };
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

    /**
     * The innermost scope of this thread. For integrations.
     *
     * @return the scope, or empty outside of any
     */
    public static Optional<IdempotenceScope> current() {
        return Optional.ofNullable(CURRENT.get());
    }

    /**
     * Does work outside of every scope. For integrations: a call that is running hides its scope from the calls it makes.
     *
     * @param work anything
     * @param <T> what it returns
     * @param <X> what it throws
     * @return what {@code work} returns
     * @throws X what {@code work} throws
     */
    public static <T extends @Nullable Object, X extends Throwable> T outside(Work<T, X> work) throws X {
        return inside(null, work);
    }

    /**
     * This scope's ID for one call, which takes it. For integrations. Thread-safe.
     *
     * @param call names the client and the method
     * @param config the call's settings
     * @param usual makes the ID that the call would have without a scope
     * @return the ID
     * @throws IllegalStateException if another call took it, if an earlier call under it is in doubt and {@link
     *     IdempotenceClientConfig#serverRetention()} will be over before this one's deadline, or if a redirect
     *     took a call under it to another origin
     */
    public IdempotenceId idFor(String call, IdempotenceClientConfig config, Supplier<IdempotenceId> usual) {
        doubt.checkThatNoneLeft();
        checkRetention(config);
        Taken by = taken;
        if (by == null) {
            by = take(call, usual);
        }
        if (!call.equals(by.call)) {
            throw new IllegalStateException("this IdempotenceScope's ID was taken by " + by.call + ", so " + call
                    + " cannot carry it too; give each call its own IdempotenceScope.with(id, ...)");
        }
        return by.id;
    }

    /**
     * Whether a call that got an ID of its own from its caller, as a header, is within this scope all the same. For integrations.
     *
     * @param own the ID in the header
     * @return true if this is a resumed scope and {@code own} its ID: {@link #idFor} gives it then; false outside of {@link
     *     IdempotenceClient#resume}
     * @throws IllegalStateException if this is a resumed scope of another ID
     */
    public boolean includes(IdempotenceId own) {
        if (resumed && !own.equals(given)) {
            throw new IllegalStateException("this call's own Idempotency-Key header is not the ID that is resumed;"
                    + " make the same call with the same ID, or make this one outside of IdempotenceClient.resume");
        }
        return resumed;
    }

    /**
     * Whether this is a scope of {@link IdempotenceClient#resume}, which a call with an ID of its own is within as well. For
     * integrations.
     *
     * @return true if it is
     */
    public boolean isResumed() {
        return resumed;
    }

    private Taken take(String call, Supplier<IdempotenceId> usual) {
        taking.lock();
        try {
            Taken by = taken;
            if (by == null) {
                by = new Taken(call, saver.apply(given != null ? given : usual.get()));
                taken = by;
            }
            return by;
        } finally {
            taking.unlock();
        }
    }

    /** An ID that the server half has forgotten would be a new one to it. */
    private void checkRetention(IdempotenceClientConfig config) {
        Instant firstSentAt = doubt.since().orElse(null);
        if (firstSentAt == null) {
            return;
        }
        Instant forgotten = firstSentAt.plus(config.serverRetention());
        if (Instant.now().plus(config.deadline()).isAfter(forgotten)) {
            throw new IllegalStateException("this ID was first sent at " + firstSentAt
                    + ", and the server half may forget it at " + forgotten
                    + " (idempotence.client.server-retention), so the call could be carried out again;"
                    + " look into the business data");
        }
    }

    /**
     * What is known of the calls that are made within this scope. For integrations.
     *
     * @return always the same
     */
    public ScopeDoubt doubt() {
        return doubt;
    }

    boolean isTaken() {
        return taken != null;
    }

    static <T extends @Nullable Object, X extends Throwable> T inside(@Nullable IdempotenceScope scope, Work<T, X> work)
            throws X {
        IdempotenceScope outer = CURRENT.get();
        set(scope);
        try {
            return work.run();
        } finally {
            set(outer);
        }
    }

    private static void set(@Nullable IdempotenceScope scope) {
        if (scope == null) {
            CURRENT.remove();
        } else {
            CURRENT.set(scope);
        }
    }
}
