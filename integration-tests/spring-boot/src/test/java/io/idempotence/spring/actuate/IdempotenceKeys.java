package io.idempotence.spring.actuate;

import io.idempotence.IdempotenceId;
import io.idempotence.server.Idempotence;

/** The keys of records. */
final class IdempotenceKeys {
    private IdempotenceKeys() {}

    /** The key of the record of a request without a user. */
    static String of(Idempotence idempotence, String id) {
        return idempotence.admin().requestKey(new IdempotenceId(id), "").value();
    }
}
