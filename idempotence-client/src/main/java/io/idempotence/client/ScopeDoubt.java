package io.idempotence.client;

import java.time.Instant;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * What is known of the calls that are made under the ID of one {@link IdempotenceScope}: whether one of them may have been carried
 * out, so that only an answer about it ends that (promise P7). For integrations; business code has no use for it. Thread-safe.
 */
public final class ScopeDoubt {
    private final AtomicReference<@Nullable Instant> ended;
    private final Map<Call, Instant> sent = new ConcurrentHashMap<>();
    private volatile boolean leftWithoutId;

    /** @param resumedFrom when a call that is in doubt was first sent, or null if there is none */
    ScopeDoubt(@Nullable Instant resumedFrom) {
        this.ended = new AtomicReference<>(resumedFrom);
    }

    /**
     * Since when a call may have been carried out.
     *
     * @return when the earliest such call was first sent: what {@link IdempotenceClient#resume} got, or what {@link Call#sent} was
     *     told; empty if there is none
     */
    public Optional<Instant> since() {
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
     * One more call begins under the ID.
     *
     * @return where to tell what becomes of it
     */
    public Call newCall() {
        return new Call();
    }

    /** @throws IllegalStateException after {@link Call#leftWithoutId} */
    void checkThatNoneLeft() {
        if (leftWithoutId) {
            throw goneWithoutId();
        }
    }

    /**
     * The exception for a call that must not be made again, because an earlier one left without its ID.
     *
     * @return a new exception
     */
    public static IllegalStateException goneWithoutId() {
        return new IllegalStateException(
                "a redirect took this call to another origin, which does not know its ID, so it could be carried out again;"
                        + " look into the business data");
    }

    /**
     * One call. From {@link #sent} on it counts until {@link #notCarriedOut} or {@link #endedInDoubt}; one that was answered, as
     * long as its scope.
     */
    public final class Call {
        private Call() {}

        /**
         * Since when <em>another</em> call may have been carried out.
         *
         * @return when the earliest other one was first sent; empty if there is none
         */
        public Optional<Instant> sinceOthers() {
            return sinceOthersThan(this);
        }

        /**
         * A request of it is about to leave, so from now on it may have been carried out: its caller may stop waiting and make it
         * again.
         *
         * @param firstSentAt when its first request left; the first that is told counts
         * @throws NullPointerException if it is null
         */
        public void sent(Instant firstSentAt) {
            sent.putIfAbsent(this, Objects.requireNonNull(firstSentAt, "firstSentAt"));
        }

        /** It ended, and leaves no doubt: it was not carried out, as far as its own requests tell. Nothing if it was not sent. */
        public void notCarriedOut() {
            sent.remove(this);
        }

        /**
         * It ended, and may have been carried out: every call begins in that doubt from now on, this one made again as well.
         * Nothing if it was not sent.
         */
        public void endedInDoubt() {
            Instant since = sent.get(this);
            if (since != null) {
                ended.accumulateAndGet(since, (known, other) -> known == null || other.isBefore(known) ? other : known);
                sent.remove(this);
            }
        }

        /** A redirect took it to another origin, which does not know the ID, so no other call may be sent under it. */
        public void leftWithoutId() {
            leftWithoutId = true;
        }
    }
}
