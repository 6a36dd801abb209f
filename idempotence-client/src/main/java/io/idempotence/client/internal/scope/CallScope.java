package io.idempotence.client.internal.scope;

import io.idempotence.IdempotenceId;
import io.idempotence.internal.ThreadBound;
import io.idempotence.internal.ThreadBound.Task;
import java.time.Instant;
import java.util.Objects;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** A scope that determines the ID of the call made inside it, in its thread. Scopes compose: each has a link to the one around it. */
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
     * @throws IllegalStateException inside a scope that resumes another ID
     */
    public static CallScope with(IdempotenceId id) {
        return new CallScope(historyOf(id, "IdempotenceScope.with"), null, null);
    }

    /** A scope whose call gets the ID that it would have without it. {@code saver} gets the ID before anything is sent. */
    public static CallScope saving(Consumer<? super IdempotenceId> saver) {
        CallScope outer = CURRENT.get();
        return new CallScope(outer == null ? new ScopeHistory(null) : outer.history, null, new Saver(saver));
    }

    /**
     * A scope whose call resumes an earlier one.
     *
     * @param firstSentAt when the earlier one was first sent under {@code id}
     * @throws IllegalStateException inside a scope that resumes another ID
     */
    public static CallScope resuming(IdempotenceId id, Instant firstSentAt) {
        CallScope scope = new CallScope(historyOf(id, "IdempotenceScope.resume"), id, null);
        scope.history.mayHaveBeenExecuted(firstSentAt);
        return scope;
    }

    /** The history of an ID. Nested scopes with one ID share it. */
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

    /** The innermost scope of this thread, or null if there is none. */
    public static @Nullable CallScope current() {
        return CURRENT.get();
    }

    /** Runs work inside {@code scope}, or outside of every scope if that is null. */
    public static <T extends @Nullable Object, X extends Throwable> T inside(@Nullable CallScope scope, Task<T, X> work)
            throws X {
        return CURRENT.during(scope, work);
    }

    /** Runs work outside of every scope: a running call hides its scope from the calls that it makes. */
    public static <T extends @Nullable Object, X extends Throwable> T outside(Task<T, X> work) throws X {
        return inside(null, work);
    }

    /**
     * Begins a call in this scope. Thread-safe.
     *
     * @param call the name of the client and the method
     * @param check throws if a call in doubt that was first sent at the given time cannot be made again
     * @param own the ID in the caller's header argument, or null if there is none
     * @param usual makes the ID that the call would have without a scope or header
     * @param alone the history of a call whose header argument is not the ID of a scope
     * @return the call, with its ID
     * @throws IllegalStateException if another call took the ID, or if {@code own} is not the ID that is resumed
     */
    public ScopeHistory.Call begin(
            String call,
            Consumer<Instant> check,
            @Nullable IdempotenceId own,
            Supplier<IdempotenceId> usual,
            ScopeHistory alone) {
        // First: a call that is refused was made too.
        for (CallScope scope = this; scope != null; scope = scope.outer) {
            scope.asked = true;
        }
        ScopeHistory of = own == null ? history : historyOf(own, alone);
        ScopeHistory.Call begun = of == alone ? alone.begin(check, own, usual) : of.begin(call, check, own, usual);
        for (CallScope scope = this; scope != null; scope = scope.outer) {
            if (scope.saver != null) {
                scope.saver.save(begun.id());
            }
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

    /** Whether a call made here resumes an earlier one. */
    public boolean isResumed() {
        for (CallScope scope = this; scope != null; scope = scope.outer) {
            if (scope.resumed != null) {
                return true;
            }
        }
        return false;
    }

    /** Whether a call under this scope's ID may have taken effect. */
    public boolean mayHaveTakenEffect() {
        return history.mayHaveTakenEffect();
    }

    /** Whether a call that carries an ID was made here, or was refused. */
    public boolean wasAsked() {
        return asked;
    }

    /** A saver that gets one ID, once. Another thread that makes the same call waits until that is done. */
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
