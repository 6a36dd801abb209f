package io.idempotence.server.storage;

import java.util.Arrays;
import java.util.EnumSet;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;

/** The state of a record. A claim whose lease is over is {@link #ABANDONED}; that state is derived, never stored. */
public enum RecordState {
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

    /**
     * The name that tools and operators use.
     *
     * @return {@code in-progress}, {@code completed}, {@code released}, {@code unknown} or {@code abandoned}
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
    public static Set<RecordState> named(String name) {
        String plain = name.strip().toLowerCase(Locale.ROOT);
        Set<RecordState> named = EnumSet.allOf(RecordState.class);
        if (!plain.equals("all")) {
            named.removeIf(state -> !state.label().equals(plain));
        }
        if (named.isEmpty()) {
            throw new IllegalArgumentException("state must be "
                    + Arrays.stream(values()).map(RecordState::label).collect(Collectors.joining(", "))
                    + " or all, got '" + name + "'");
        }
        return named;
    }
}
