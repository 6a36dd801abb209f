package io.idempotence.it.chaos;

/**
 * A time in which a provider or the storage was down, paused or cut off; by {@link System#nanoTime()}.
 *
 * @param provider which one, if the step is about one
 */
record Incident(ChaosPlan.Step step, int provider, long from, long to) {
    /** Whether it explains an unknown outcome of a call: one that begins later finds everything repaired. */
    boolean touches(Call call, long recoveryNanos) {
        return overlaps(call.begunAt(), call.endedAt(), recoveryNanos);
    }

    /** Whether it was, or its consequences were, between two times. */
    boolean overlaps(long begin, long end, long recoveryNanos) {
        return from <= end && to + recoveryNanos >= begin;
    }

    boolean stops(int which) {
        return step.stopsProvider() && provider == which;
    }

    @Override
    public String toString() {
        return step + " " + provider;
    }
}
