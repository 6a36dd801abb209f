package io.idempotence.server.storage;

import java.time.Duration;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * A record as an operator sees it.
 *
 * @param state its state by the storage's clock
 * @param fence the number of claims so far
 * @param owner the attempt that made the latest claim
 * @param leaseLeft the time until the claim counts as abandoned; if the record is abandoned or unknown, minus the time since; zero in other
 *     states
 * @param retentionLeft the time until the record is gone
 */
public record IdempotenceRecord(
        StorageKey key, State state, long fence, Owner owner, Duration leaseLeft, Duration retentionLeft) {

    /** {@return whether a person has to resolve the record: true if it is abandoned or unknown} */
    public boolean isUncertain() {
        return state.isUncertain();
    }

    /**
     * Whether a later look shows the same record in the same state. A claim whose lease ended in between has changed: it is abandoned. The
     * fence alone cannot tell, because it begins again after a record was deleted.
     *
     * @param later the later look
     * @return true if key, state, fence and owner are the same
     */
    public boolean isUnchanged(IdempotenceRecord later) {
        return key.equals(later.key) && state == later.state && fence == later.fence && owner.equals(later.owner);
    }

    /** {@return how long the record has been abandoned or unknown, by the storage's clock; zero if it is neither} */
    public Duration uncertainFor() {
        return isUncertain() && leaseLeft.isNegative() ? leaseLeft.negated() : Duration.ZERO;
    }

    /**
     * What tools show of the record, in their order: {@code key}, {@code state}, {@code fence}, {@code uncertainForMillis} if it is
     * uncertain, {@code leaseLeftMillis} if it is in progress, and {@code retentionLeftMillis}.
     *
     * @return a new map of texts and whole numbers, never the result
     */
    public Map<String, Object> fields() {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("key", key.value());
        fields.put("state", state.label());
        fields.put("fence", fence);
        if (isUncertain()) {
            fields.put("uncertainForMillis", uncertainFor().toMillis());
        }
        if (state == State.IN_PROGRESS) {
            fields.put("leaseLeftMillis", leaseLeft.toMillis());
        }
        fields.put("retentionLeftMillis", retentionLeft.toMillis());
        return fields;
    }

    /** The state of a record. A claim whose lease is over is {@link #ABANDONED}; that state is derived, never stored. */
    public enum State {
        /** Claimed, and the lease runs. */
        IN_PROGRESS,
        /** Finished; its result is replayed until retention ends. */
        COMPLETED,
        /** Failed and released; the next attempt may run. */
        RELEASED,
        /** The handler marked its outcome as unknown. */
        UNKNOWN,
        /** Claimed, the lease is over, nothing was recorded. */
        ABANDONED;

        /** {@return whether a person has to resolve a record in this state: true for {@link #ABANDONED} and {@link #UNKNOWN}} */
        public boolean isUncertain() {
            return this == ABANDONED || this == UNKNOWN;
        }

        /**
         * {@return the name that tools and operators use: {@code in-progress}, {@code completed}, {@code released}, {@code unknown} or
         * {@code abandoned}}
         */
        public String label() {
            return name().toLowerCase(Locale.ROOT).replace('_', '-');
        }

        /**
         * The states that an operator names.
         *
         * @param name a {@link #label}, in any case, or {@code all}
         * @return one state, or all of them
         * @throws IllegalArgumentException if it is neither
         */
        public static Set<State> named(String name) {
            String plain = name.strip().toLowerCase(Locale.ROOT);
            Set<State> named = EnumSet.allOf(State.class);
            if (!plain.equals("all")) {
                named.removeIf(state -> !state.label().equals(plain));
            }
            if (named.isEmpty()) {
                throw new IllegalArgumentException("state must be "
                        + Arrays.stream(values()).map(State::label).collect(Collectors.joining(", "))
                        + " or all, got '" + name + "'");
            }
            return named;
        }
    }

    /** The finding of a person, or of the operation's recovery rule, about an abandoned or unknown execution (T17). */
    public enum Resolution {
        /** It took effect: the ID is completed without a response. Later attempts are refused as result-unavailable. */
        APPLIED,
        /** It took no effect: the ID is released. The next attempt runs. */
        NOT_APPLIED
    }
}
