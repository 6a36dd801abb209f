package io.idempotence.it.chaos;

/** A time in which a process or the storage was down, paused or cut off; by {@link System#nanoTime()}. */
record Incident(String what, long from, long to) {
    /** Whether it explains an unknown outcome of a call: what was in flight then may be recognised as lost a while later. */
    boolean touches(Call call, long graceNanos) {
        return from <= call.endedAt() && to + graceNanos >= call.begunAt();
    }
}
