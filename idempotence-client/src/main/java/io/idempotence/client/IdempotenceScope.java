package io.idempotence.client;

import io.idempotence.IdempotenceId;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
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
 * sends the ID again. Any other protected call inside is an {@link IllegalStateException}, as two calls never share an ID
 * (promise P1): give it a scope of its own. Calls that carry no ID (GET, or PUT without {@code @Idempotent}) and calls with
 * an own header argument leave the scope alone.
 *
 * <p>A scope holds for the calling thread, from entry to exit, and not in threads started inside. Scopes nest: the inner one
 * holds until its exit, then the outer one again. Calls made <em>by</em> a call, such as an interceptor fetching a token,
 * are outside.
 */
public final class IdempotenceScope {
    private static final ThreadLocal<@Nullable IdempotenceScope> CURRENT = new ThreadLocal<>();

    private final IdempotenceId id;
    private final AtomicReference<@Nullable String> takenBy = new AtomicReference<>();

    private IdempotenceScope(IdempotenceId id) {
        this.id = id;
    }

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
        return inside(new IdempotenceScope(Objects.requireNonNull(id, "id")), work);
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
     * @return the ID
     * @throws IllegalStateException if another call took it
     */
    public IdempotenceId idFor(String call) {
        takenBy.compareAndSet(null, call);
        String taker = takenBy.get();
        if (!call.equals(taker)) {
            throw new IllegalStateException("this IdempotenceScope's ID was taken by " + taker + ", so " + call
                    + " cannot carry it too; give each call its own IdempotenceScope.with(id, ...)");
        }
        return id;
    }

    private static <T extends @Nullable Object, X extends Throwable> T inside(
            @Nullable IdempotenceScope scope, Work<T, X> work) throws X {
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
