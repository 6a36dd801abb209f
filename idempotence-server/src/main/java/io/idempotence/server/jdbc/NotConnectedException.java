package io.idempotence.server.jdbc;

import java.sql.SQLTransientConnectionException;
import org.jspecify.annotations.Nullable;

/** There is no connection to work on: nothing was sent. */
final class NotConnectedException extends SQLTransientConnectionException {
    private static final long serialVersionUID = 1L;

    /**
     * @param reason for the one who reads the log; without keys and passwords, which a driver's message may hold
     */
    NotConnectedException(String reason, @Nullable Throwable cause) {
        super(reason, cause);
    }
}
