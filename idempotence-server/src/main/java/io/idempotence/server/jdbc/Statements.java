package io.idempotence.server.jdbc;

/**
 * The statements for one database and its table names. Each is a transaction of its own. Each write has a condition, and its count of rows
 * shows whether it won. A row whose {@code expires_at} is over counts as absent.
 */
final class Statements {
    private static final String OWN =
            "id = :id AND format = 1 AND owner = :owner AND fence = :fence AND state = 'P' AND expires_at > {now}";

    private static final String UNCHANGED =
            "id = :id AND format = :oldFormat AND state = :oldState AND fence = :oldFence AND owner = :oldOwner"
                    + " AND fingerprint = :oldFingerprint AND lease_until = :oldLeaseUntil AND expires_at = :oldExpiresAt";

    /** Inserts the claim of a free ID, and reads nothing. */
    final Sql claim;

    /** Returns one {@link Row}, whether there is a record or not. */
    final Sql look;

    /** Like {@link #look}, without the bytes of the result. */
    final Sql find;

    /** Returns a {@link Row} and its key for each record of a page. */
    final Sql list;

    final Sql insert;

    /** Replaces a row by compare-and-set. */
    final Sql replace;

    /** Ends the caller's own live claim. */
    final Sql finish;

    final Sql renew;
    final Sql delete;

    /** Deletes a row by compare-and-set. */
    final Sql deleteUnchanged;

    final Sql deleteExpired;
    final Sql probe;

    /** Reads the caller's own live claim without a lock. */
    final Sql held;

    final Sql mark;
    final Sql forgetExpiredMark;
    final Sql deleteMark;
    final Sql deleteUnchangedMark;
    final Sql deleteExpiredMarks;
    final Sql probeMarks;

    private final Dialect dialect;
    private final String table;
    private final String appliedTable;
    private final boolean inTransaction;

    Statements(Dialect dialect, TableName table, TableName appliedTable, boolean inTransaction) {
        this.dialect = dialect;
        this.table = table.value();
        this.appliedTable = appliedTable.value();
        this.inTransaction = inTransaction;
        String lookFrom = " FROM (SELECT 1 AS one) x LEFT JOIN {t} r ON r.id = :id" + joinMark(":id");
        claim = sql("""
                INSERT INTO {t} (id, format, state, taken_over, fence, owner, fingerprint, lease_until, expires_at)
                """ + (inTransaction ? """
                SELECT :id, 1, 'P', 2, 1, :owner, :fingerprint, {now} + :lease, {now} + :retention
                WHERE NOT EXISTS (SELECT 1 FROM {a} WHERE id = :id AND expires_at > {now})
                """ : """
                VALUES (:id, 1, 'P', 0, 1, :owner, :fingerprint, {now} + :lease, {now} + :retention)
                """) + orNothing());
        look = sql("SELECT " + columns("r.result") + lookFrom);
        find = sql("SELECT " + columns("NULL") + lookFrom);
        list = sql("SELECT r.id, " + columns("NULL") + " FROM {t} r" + joinMark("r.id")
                + " WHERE r.id > :after AND r.expires_at > {now} ORDER BY r.id "
                // Several modes of H2 have no LIMIT.
                + (dialect == Dialect.H2 ? "FETCH FIRST :limit ROWS ONLY" : "LIMIT :limit"));
        insert = sql("""
                INSERT INTO {t} (id, format, state, taken_over, fence, owner, fingerprint, lease_until, expires_at, result)
                VALUES (:id, 1, :state, :takenOver, :fence, :owner, :fingerprint, :leaseUntil, :expiresAt, :result)
                """ + orNothing());
        replace = sql("""
                UPDATE {t} SET format = 1, state = :state, taken_over = :takenOver, fence = :fence, owner = :owner,
                  fingerprint = :fingerprint, lease_until = :leaseUntil, expires_at = :expiresAt, result = :result
                WHERE %s
                """.formatted(UNCHANGED));
        finish = sql("""
                UPDATE {t} SET state = :state, taken_over = 0, fingerprint = :fingerprint, result = :result,
                  lease_until = CASE WHEN :unknown = 1 THEN {now} ELSE 0 END, expires_at = {now} + :retention
                WHERE %s
                """.formatted(OWN));
        renew = sql("""
                UPDATE {t} SET lease_until = {now} + :lease, expires_at = GREATEST(expires_at, {now} + :lease)
                WHERE %s
                """.formatted(OWN));
        delete = sql("DELETE FROM {t} WHERE id = :id AND expires_at > {now}");
        deleteUnchanged = sql("DELETE FROM {t} WHERE " + UNCHANGED);
        deleteExpired = sql(deleteExpired("{t}"));
        probe = sql(
                "SELECT id, format, state, taken_over, fence, owner, fingerprint, lease_until, expires_at, result FROM {t}"
                        + " WHERE id = ''");
        held = sql("SELECT fingerprint, expires_at FROM {t} WHERE " + OWN);
        mark = sql("""
                INSERT INTO {a} (id, fence, fingerprint, applied_at, expires_at)
                VALUES (:id, :fence, :fingerprint, {now}, :expiresAt)
                """ + orNothing());
        forgetExpiredMark = sql("DELETE FROM {a} WHERE id = :id AND expires_at <= {now}");
        deleteMark = sql("DELETE FROM {a} WHERE id = :id AND expires_at > {now}");
        deleteUnchangedMark =
                sql("DELETE FROM {a} WHERE id = :id AND fence = :markFence AND expires_at = :markExpiresAt");
        deleteExpiredMarks = sql(deleteExpired("{a}"));
        probeMarks = sql("SELECT id, fence, fingerprint, applied_at, expires_at FROM {a} WHERE id = ''");
    }

    /** Ignores a conflict, because PostgreSQL aborts the transaction of an insert that fails. */
    private String orNothing() {
        return dialect == Dialect.POSTGRESQL ? " ON CONFLICT (id) DO NOTHING" : "";
    }

    private String columns(String result) {
        return "{now} AS clock, r.format, r.state, r.taken_over, r.fence, r.owner, r.fingerprint, r.lease_until, r.expires_at, "
                + result + " AS result, "
                + (inTransaction
                        ? "a.fence AS applied_fence, a.fingerprint AS applied_fingerprint, a.expires_at AS applied_expires_at"
                        : "NULL AS applied_fence, NULL AS applied_fingerprint, NULL AS applied_expires_at");
    }

    private String joinMark(String id) {
        return inTransaction ? " LEFT JOIN {a} a ON a.id = " + id + " AND a.expires_at > {now}" : "";
    }

    Dialect dialect() {
        return dialect;
    }

    /** Deletes expired rows. Concurrent instances take different rows on PostgreSQL, and wait for each other elsewhere. */
    private String deleteExpired(String name) {
        return dialect == Dialect.POSTGRESQL
                ? "DELETE FROM " + name + " WHERE expires_at <= {now} AND id = ANY(ARRAY(SELECT id FROM " + name
                        + " WHERE expires_at <= {now} ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED))"
                : "DELETE FROM " + name + " WHERE expires_at <= {now} "
                        + (dialect == Dialect.H2 ? "FETCH FIRST :limit ROWS ONLY" : "ORDER BY expires_at LIMIT :limit");
    }

    private Sql sql(String template) {
        return new Sql(template.replace("{now}", dialect.now)
                .replace("{t}", table)
                .replace("{a}", appliedTable)
                .strip());
    }
}
