package io.idempotence.spring.actuate;

import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.IdempotenceAdmin.Resolved;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The end of an uncertainty, as endpoint and console carry it out and describe it. */
final class Resolving {
    private Resolving() {}

    /** @param fence the fence of the record as a person saw it; null if that does not matter */
    static Resolved resolve(
            IdempotenceAdmin admin, Optional<IdempotenceRecord> now, @Nullable Long fence, Resolution resolution) {
        if (now.isEmpty()) {
            return Resolved.NOT_FOUND;
        }
        IdempotenceRecord record = now.get();
        return fence == null || fence == record.fence() ? admin.resolve(record, resolution) : Resolved.CHANGED;
    }

    static boolean isDone(Resolved resolved) {
        return resolved == Resolved.DONE || resolved == Resolved.ALREADY;
    }

    static String message(Resolved resolved, Resolution as) {
        boolean applied = as == Resolution.APPLIED;
        return switch (resolved) {
            case DONE ->
                applied
                        ? "resolved as applied: it never runs again; later attempts are refused as result-unavailable"
                        : "resolved as not applied: the next attempt runs the operation";
            case ALREADY ->
                applied
                        ? "already completed, perhaps by its owner: it never runs again"
                        : "already released: the next attempt runs the operation";
            case NOT_FOUND -> "no such record: its retention is over, or it belongs to another namespace";
            case NOT_UNCERTAIN -> "nothing was done: only an abandoned or unknown record can be resolved";
            case CHANGED -> "nothing was done: the record has changed since it was read; read it again";
        };
    }
}
