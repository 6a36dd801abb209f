package io.idempotence.server.jdbc;

import java.sql.SQLTransientConnectionException;
import org.jspecify.annotations.Nullable;

/** A failure to get a usable connection. Nothing was sent. */
final class NotConnectedException extends SQLTransientConnectionException {
    private static final long serialVersionUID = 1L;

    /** @param reason the reason, without keys and passwords, which a driver's message may contain */
    NotConnectedException(String reason, @Nullable Throwable cause) {
        super(reason, cause);
    }
}
