package io.idempotence.client.internal.scope;

import io.idempotence.IdempotenceId;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The calls that are made under one ID, and whether one of them may have been executed: then only a response about it ends that
 * doubt (promise P7). Thread-safe.
 */
public final class ScopeHistory {
    private final ReentrantLock taking = new ReentrantLock();
    private volatile @Nullable IdempotenceId id;
    private @Nullable String takenBy;

    private final AtomicReference<@Nullable Instant> ended = new AtomicReference<>();
    private final Map<Call, Instant> sent = new ConcurrentHashMap<>();

    /** @param id the ID, or null if the first call brings it */
    ScopeHistory(@Nullable IdempotenceId id) {
        this.id = id;
    }

    /**
     * The history of a call that no scope knows.
     *
     * @return a new one
     */
    public static ScopeHistory ofOneCall() {
        return new ScopeHistory(null);
    }

    /**
     * Whether a call under the ID may have been executed.
     *
     * @return true if the next one begins in doubt
     */
    public boolean isInDoubt() {
        return since().isPresent();
    }

    /**
     * Begins a call that no scope knows.
     *
     * @param check throws if a call in doubt that was first sent at the given time cannot be made again
     * @param own the ID in the caller's header, or null if there is none
     * @param usual makes the ID that it would have without one
     * @return the call, with its ID: that of the calls before, if there were any
     */
    public Call begin(Consumer<Instant> check, @Nullable IdempotenceId own, Supplier<IdempotenceId> usual) {
        return begin("this call", check, own, usual);
    }

    /**
     * @param call names the client and the method
     * @throws IllegalStateException if another method took the ID
     */
    Call begin(String call, Consumer<Instant> check, @Nullable IdempotenceId own, Supplier<IdempotenceId> usual) {
        take(call, check, own == null ? usual : () -> own);
        return newCall();
    }

    /** Whether the calls in it carry {@code own}. A history without an ID gets this one. */
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

    /** A call that may have been executed was first sent then. */
    void mayHaveBeenExecuted(Instant firstSentAt) {
        ended.accumulateAndGet(firstSentAt, (known, other) -> known == null || other.isBefore(known) ? other : known);
    }

    /** When the earliest call was first sent that may have been executed; empty if there is none. */
    Optional<Instant> since() {
        return sinceOthersThan(null);
    }

    private Optional<Instant> sinceOthersThan(@Nullable Call call) {
        return Stream.concat(
                        Stream.ofNullable(ended.get()),
                        sent.entrySet().stream()
                                .filter(other -> other.getKey() != call)
                                .map(Map.Entry::getValue))
                .min(Instant::compareTo);
    }

    /**
     * One more call, which has no ID yet unless another has.
     *
     * @return a new one, in the doubt about the others
     */
    public Call newCall() {
        return new Call();
    }

    /**
     * One call, and the only place that knows whether it is in doubt: one of its own attempts may have been executed, or another
     * call under the ID. Others see it from {@link #sent} on until {@link #ended}; if it was answered or ended in doubt, as long as
     * its scope.
     */
    public final class Call {
        private final Instant openedAt = Instant.now();
        private volatile @Nullable Instant othersSentAt;
        private volatile boolean inDoubt;
        private volatile boolean answered;

        private Call() {}

        /**
         * The ID of the history it is in.
         *
         * @return the ID
         * @throws IllegalStateException if the call has none
         */
        public IdempotenceId id() {
            IdempotenceId known = id;
            if (known == null) {
                throw new IllegalStateException("this call has no ID");
            }
            return known;
        }

        /** A request of it is about to leave: from now on it may be executed, and its caller may stop waiting and make it again. */
        public void sent() {
            sent.computeIfAbsent(this, call -> Instant.now());
        }

        /** An attempt of it may have been executed. */
        public void doubt() {
            inDoubt = true;
        }

        /**
         * Whether it, or another call under the ID, may have been executed. What was in doubt once stays so for this call.
         *
         * @return true if it is in doubt
         */
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

        /**
         * When the first request under the ID left, of an earlier call in doubt if there was one.
         *
         * @return the time; that of the beginning of the call if nothing left
         */
        public Instant firstSentAt() {
            Instant others = othersSentAt;
            return others != null ? others : sent.getOrDefault(this, openedAt);
        }

        /** The operation itself has answered: it knows the ID, whatever becomes of that response on its way to the caller. */
        public void answered() {
            answered = true;
        }

        /**
         * Whether the operation has answered.
         *
         * @return true after {@link #answered()}
         */
        public boolean isAnswered() {
            return answered;
        }

        /**
         * It ended. If it may have been executed, every later call under the ID begins in doubt, this one made again as well.
         *
         * @param unknown it ended in an unknown outcome
         */
        public void ended(boolean unknown) {
            Instant since = sent.get(this);
            if (since == null) {
                return;
            }
            if (inDoubt || unknown) {
                mayHaveBeenExecuted(since);
                sent.remove(this);
            } else if (!answered) {
                sent.remove(this);
            }
        }
    }
}
