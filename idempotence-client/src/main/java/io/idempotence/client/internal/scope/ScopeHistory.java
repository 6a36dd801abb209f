package io.idempotence.client.internal.scope;

import io.idempotence.IdempotenceId;
import io.idempotence.client.internal.http.Observation;
import java.time.Instant;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The history of one ID: the calls made under it, and whether one of them may have been executed. Only a response of the operation ends
 * that doubt (promise P7). Thread-safe.
 */
public final class ScopeHistory {
    private final ReentrantLock taking = new ReentrantLock();
    private volatile @Nullable IdempotenceId id;
    private @Nullable String takenBy;

    private final AtomicReference<@Nullable Instant> ended = new AtomicReference<>();

    private volatile @Nullable HandlerFailure failure;

    /** The calls that others are in doubt about. Nearly always there is one at most. */
    private final CopyOnWriteArrayList<Call> sent = new CopyOnWriteArrayList<>();

    /**
     * The response of a handler that failed and may have taken effect.
     *
     * @param thrown the exception that represents it, or null if a client returns it as a response
     */
    public record HandlerFailure(Observation seen, @Nullable Throwable thrown) {}

    /** @param id the ID, or null if it is that of the first call */
    ScopeHistory(@Nullable IdempotenceId id) {
        this.id = id;
    }

    /** A new history, of a call without a scope. */
    public static ScopeHistory ofOneCall() {
        return new ScopeHistory(null);
    }

    /** Whether a call under the ID may have been executed, so that the next one starts in doubt. */
    public boolean isInDoubt() {
        return since().isPresent();
    }

    /** Whether a call under the ID may have taken effect: it is in doubt, or its handler failed. */
    public boolean mayHaveTakenEffect() {
        return isInDoubt() || failure != null;
    }

    /**
     * Begins a call without a scope.
     *
     * @param check throws if a call in doubt that was first sent at the given time cannot be made again
     * @param own the ID in the caller's header, or null if there is none
     * @param usual makes the ID that the call would have without a header
     * @return the call, with its ID: that of earlier calls, if there were any
     */
    public Call begin(Consumer<Instant> check, @Nullable IdempotenceId own, Supplier<IdempotenceId> usual) {
        return begin("this call", check, own, usual);
    }

    /**
     * Begins a call in a scope.
     *
     * @param call the name of the client and the method
     * @throws IllegalStateException if another method took the ID
     */
    Call begin(String call, Consumer<Instant> check, @Nullable IdempotenceId own, Supplier<IdempotenceId> usual) {
        take(call, check, own == null ? usual : () -> own);
        return newCall();
    }

    /** Whether the calls of this history carry {@code own}. A history without an ID adopts it. */
    boolean isOf(IdempotenceId own) {
        return own.equals(idOr(() -> own));
    }

    boolean has(IdempotenceId other) {
        return other.equals(id);
    }

    private IdempotenceId idOr(Supplier<IdempotenceId> usual) {
        taking.lock();
        try {
            IdempotenceId known = id;
            if (known == null) {
                known = usual.get();
                id = known;
            }
            return known;
        } finally {
            taking.unlock();
        }
    }

    private void take(String call, Consumer<Instant> check, Supplier<IdempotenceId> usual) {
        since().ifPresent(check);
        taking.lock();
        try {
            if (takenBy != null && !takenBy.equals(call)) {
                throw new IllegalStateException("this IdempotenceScope's ID was taken by " + takenBy + ", so " + call
                        + " cannot carry it too; give each call its own IdempotenceScope.with(id, ...)");
            }
            idOr(usual);
            takenBy = call;
        } finally {
            taking.unlock();
        }
    }

    /** Records a call that may have been executed and was first sent at the given time. */
    void mayHaveBeenExecuted(Instant firstSentAt) {
        ended.accumulateAndGet(firstSentAt, ScopeHistory::earlier);
    }

    private static Instant earlier(@Nullable Instant known, Instant other) {
        return known == null || other.isBefore(known) ? other : known;
    }

    /** When the earliest call that may have been executed was first sent; empty if there is none. */
    Optional<Instant> since() {
        return sinceOthersThan(null);
    }

    private Optional<Instant> sinceOthersThan(@Nullable Call call) {
        Instant earliest = null;
        for (Call other : sent) {
            if (other != call) {
                earliest = earlier(earliest, other.sentAt);
            }
        }
        // Read last, because a call that ends is added here before it is removed there.
        Instant before = ended.get();
        return Optional.ofNullable(before == null ? earliest : earlier(earliest, before));
    }

    /** Adds a call, in doubt if another one is. It has no ID yet unless the history has one. */
    public Call newCall() {
        return new Call();
    }

    /**
     * One call, with its state of doubt: one of its own attempts, or another call under the ID, may have been executed. From {@link #sent}
     * until {@link #ended}, this call puts the other calls under the ID in doubt. If the operation responded to it, or it ended in doubt,
     * it does so as long as the scope exists.
     */
    public final class Call {
        /** When the first request was sent; until then, when the call was opened. */
        private volatile Instant sentAt = Instant.now();

        private volatile @Nullable Instant othersSentAt;
        private volatile boolean inDoubt;
        private volatile boolean responded;

        private Call() {}

        /** @throws IllegalStateException if the history has no ID */
        public IdempotenceId id() {
            IdempotenceId known = id;
            if (known == null) {
                throw new IllegalStateException("this call has no ID; expected one to be chosen before it is read");
            }
            return known;
        }

        /**
         * Records that a request is about to be sent. From now on the call may be executed, and its caller may stop waiting and make it
         * again.
         */
        public void sent() {
            // Taken first: of two runs that begin together, none may write a time after the other's request has left.
            Instant now = Instant.now();
            if (!sent.contains(this)) {
                sentAt = now;
                sent.addIfAbsent(this);
            }
        }

        /** Records that an attempt may have been executed. */
        public void doubt() {
            inDoubt = true;
        }

        /** Whether this call, or another one under the ID, may have been executed. Once true, it stays true for this call. */
        public boolean isInDoubt() {
            sinceOthersThan(this).ifPresent(since -> {
                inDoubt = true;
                Instant known = othersSentAt;
                if (known == null || since.isBefore(known)) {
                    othersSentAt = since;
                }
            });
            return inDoubt;
        }

        /** Records that the handler failed and may have taken effect. This is not a doubt: the call may end with another failure. */
        public void failed(HandlerFailure last) {
            failure = last;
        }

        /** The last failure of the handler under the ID, in this call or an earlier one. Null if there is none. */
        public @Nullable HandlerFailure failure() {
            return failure;
        }

        /** When the first request of this call, or of an earlier call in doubt, was sent; the start of this call if nothing was sent. */
        public Instant firstSentAt() {
            Instant others = othersSentAt;
            return others != null ? others : sentAt;
        }

        /** Records that the operation itself responded. It then has the ID, even if the response is lost on its way to the caller. */
        public void responded() {
            responded = true;
        }

        /** Whether {@link #responded} was called. */
        public boolean hasResponded() {
            return responded;
        }

        /**
         * Records the end of the call. If it may have been executed, every later call under the ID starts in doubt, including a repetition
         * of this one.
         *
         * @param unknown whether it ended with an unknown outcome
         */
        public void ended(boolean unknown) {
            if (!sent.contains(this)) {
                return;
            }
            if (inDoubt || unknown) {
                mayHaveBeenExecuted(sentAt);
                sent.remove(this);
            } else if (!responded) {
                sent.remove(this);
            }
        }
    }
}
