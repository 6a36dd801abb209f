package io.idempotence.server.jdbc;

import io.idempotence.server.storage.StorageKey;
import java.sql.SQLException;

/** The mark of an applied execution, committed together with its business data. There is at most one for each ID. */
record AppliedMark(StorageKey key, long fence) {
    /**
     * Sets the mark in the transaction of the session. Reading the record locks nothing, so that others can read and renew it. The primary
     * key of the marks decides.
     *
     * @return false if the claim is no longer held, or another execution was applied
     */
    boolean set(Session session, Statements sql) throws SQLException {
        Sql.Parameters parameters = new Sql.Parameters().with("id", key.value()).with("fence", fence);
        boolean held = session.query(sql.held, parameters, rows -> {
            boolean found = rows.next();
            if (found) {
                parameters
                        .with("fingerprint", rows.getBytes("fingerprint"))
                        .with("expiresAt", rows.getLong("expires_at"));
            }
            return found;
        });
        // An existing mark may belong to an earlier use of this ID, whose retention is over.
        return held
                && (session.insert(sql.mark, parameters)
                        || (session.update(sql.forgetExpiredMark, parameters) == 1
                                && session.insert(sql.mark, parameters)));
    }
}
