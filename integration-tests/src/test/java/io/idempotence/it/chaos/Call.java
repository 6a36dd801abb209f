package io.idempotence.it.chaos;

import java.util.List;

/**
 * One logical call in the history; times by {@link System#nanoTime()}.
 *
 * @param name what it asks for, unique
 * @param ids the IDs that were generated for it, and those of its requests
 * @param ending how it ended for its caller
 * @param settled how it ended when it was repeated under its ID, after everything was repaired; the ending itself if that was definite
 */
record Call(String name, List<String> ids, long begunAt, long endedAt, Ending ending, Ending settled) {
    Call withIds(List<String> all) {
        return new Call(name, all, begunAt, endedAt, ending, settled);
    }

    Call settledAs(Ending later) {
        return new Call(name, ids, begunAt, endedAt, ending, later);
    }
}
