package io.idempotence.client.internal.scope;

import io.idempotence.IdempotenceId;
import io.idempotence.client.internal.scope.ThreadBound.Task;
import java.time.Instant;
import java.util.Objects;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** What decides the ID of the call made inside it, in the thread that is in it. Scopes compose: each knows the ones around it. */
public final class CallScope {
    private static final ThreadBound<CallScope> CURRENT = new ThreadBound<>();

    private final @Nullable CallScope outer = CURRENT.get();
    private final @Nullable Saver saver;
    private final @Nullable IdempotenceId resumed;
    private final ScopeHistory history;
    private volatile boolean asked;

    private CallScope(ScopeHistory history, @Nullable IdempotenceId resumed, @Nullable Saver saver) {
        this.history = history;
        this.resumed = resumed;
        this.saver = saver;
    }

    /**
     * A scope whose call carries {@code id}.
     *
     * @throws IllegalStateException inside one that resumes another ID
     */
    public static CallScope with(IdempotenceId id) {
        return new CallScope(historyOf(id, "IdempotenceScope.with"), null, null);
    }

    /** A scope whose call gets the ID that it would have without it. {@code saver} gets it before anything is sent. */
    public static CallScope saving(Consumer<? super IdempotenceId> saver) {
        CallScope outer = CURRENT.get();
        return new CallScope(outer == null ? new ScopeHistory(null) : outer.history, null, new Saver(saver));
    }

    /**
     * A scope whose call asks what became of an earlier one.
     *
     * @param firstSentAt when the earlier one was first sent under {@code id}
     * @throws IllegalStateException inside one that resumes another ID
     */
    public static CallScope resuming(IdempotenceId id, Instant firstSentAt) {
        CallScope scope = new CallScope(historyOf(id, "IdempotenceScope.resume"), id, null);
        scope.history.mayHaveBeenExecuted(firstSentAt);
        return scope;
    }

    /** Two scopes with one ID share what is known of it. */
    private static ScopeHistory historyOf(IdempotenceId given, String giver) {
        CallScope outer = CURRENT.get();
        checkResumed(outer, given, giver);
        for (CallScope scope = outer; scope != null; scope = scope.outer) {
            if (scope.history.has(given)) {
                return scope.history;
            }
        }
        return new ScopeHistory(given);
    }

    private static void checkResumed(@Nullable CallScope innermost, IdempotenceId id, String giver) {
        for (CallScope scope = innermost; scope != null; scope = scope.outer) {
            if (scope.resumed != null && !scope.resumed.equals(id)) {
                throw new IllegalStateException(giver + " has another ID than the IdempotenceScope.resume around it, so"
                        + " nothing was sent; make the resumed call with the ID that is resumed, and other calls outside"
                        + " of IdempotenceScope.resume");
            }
        }
    }

    /** The innermost scope of this thread, or null outside of any. */
    public static @Nullable CallScope current() {
        return CURRENT.get();
    }

    /** Does work inside {@code scope}, or outside of every scope if that is null. */
    public static <T extends @Nullable Object, X extends Throwable> T inside(@Nullable CallScope scope, Task<T, X> work)
            throws X {
        return CURRENT.during(scope, work);
    }

    /** Does work outside of every scope: a call that is running hides its scope from the calls it makes. */
    public static <T extends @Nullable Object, X extends Throwable> T outside(Task<T, X> work) throws X {
        return inside(null, work);
    }

    /**
     * Begins a call in this scope. Thread-safe.
     *
     * @param call names the client and the method
     * @param check throws if a call in doubt that was first sent at the given time cannot be made again
     * @param own the ID in the caller's header argument, or null if there is none
     * @param usual makes the ID that the call would have without a scope or header
     * @param alone keeps what is known of a call whose header argument is the ID of no scope
     * @return the call, with its ID
     * @throws IllegalStateException if another call took the ID, or if {@code own} is not the ID that is resumed
     */
    public ScopeHistory.Call begin(
            String call,
            Consumer<Instant> check,
            @Nullable IdempotenceId own,
            Supplier<IdempotenceId> usual,
            ScopeHistory alone) {
        ScopeHistory of = own == null ? history : historyOf(own, alone);
        ScopeHistory.Call begun = of == alone ? alone.begin(check, own, usual) : of.begin(call, check, own, usual);
        for (CallScope scope = this; scope != null; scope = scope.outer) {
            if (scope.saver != null) {
                scope.saver.save(begun.id());
            }
        }
        for (CallScope scope = this; scope != null; scope = scope.outer) {
            scope.asked = true;
        }
        return begun;
    }

    private ScopeHistory historyOf(IdempotenceId own, ScopeHistory alone) {
        checkResumed(this, own, "the call's own Idempotency-Key header");
        for (CallScope scope = this; scope != null; scope = scope.outer) {
            if (scope.history.isOf(own)) {
                return scope.history;
            }
        }
        return alone;
    }

    /** True if a call made here asks what became of an earlier one. */
    public boolean isResumed() {
        for (CallScope scope = this; scope != null; scope = scope.outer) {
            if (scope.resumed != null) {
                return true;
            }
        }
        return false;
    }

    /** True if a call under this scope's ID may have been executed, so that the next one begins in doubt. */
    public boolean isInDoubt() {
        return history.isInDoubt();
    }

    /** True if a call that carries an ID was made here. */
    public boolean wasAsked() {
        return asked;
    }

    /** Hands one ID over, once. Another thread that makes the same call waits until that is done. */
    private static final class Saver {
        private final Consumer<? super IdempotenceId> consumer;
        private final ReentrantLock saving = new ReentrantLock();
        private @Nullable IdempotenceId saved;

        Saver(Consumer<? super IdempotenceId> consumer) {
            this.consumer = Objects.requireNonNull(consumer, "saver");
        }

        void save(IdempotenceId id) {
            saving.lock();
            try {
                if (saved == null) {
                    consumer.accept(id);
                    saved = id;
                } else if (!saved.equals(id)) {
                    throw new IllegalStateException("this IdempotenceScope.saving has saved the ID of another call, so"
                            + " nothing was sent; give each call its own IdempotenceScope.saving");
                }
            } finally {
                saving.unlock();
            }
        }
    }
}
