package io.idempotence.server.storage;

import java.util.Locale;

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
}
