package io.idempotence.server.jdbc;

import io.idempotence.server.IdempotentExecution;
import io.idempotence.server.storage.Millis;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Objects;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * A storage in PostgreSQL 10, MySQL 8, MariaDB 10.5 or H2 2, each or later. Thread-safe. One daemon thread deletes expired rows, see
 * {@link Builder#cleanUpEvery}.
 *
 * <p>One row per ID. Each call is one statement where the database can (see {@code docs/storage-jdbc.md} for the exceptions), and each
 * statement is a transaction of its own, right at every isolation level from READ COMMITTED on. The time is the database's.
 *
 * <p>It works on any {@code DataSource}, which is never closed here. Connections are used with auto-commit and given back exactly as
 * they were. The {@code DataSource} must not be one that lends the connection of the running transaction, such as Spring's {@code
 * TransactionAwareDataSourceProxy}: the records must survive a rollback of the business transaction. Such a proxy is refused by
 * {@link Builder#build}; a connection that comes with a transaction is refused by each call, which throws
 * {@link StorageUnavailableException} and leaves the transaction as it is.
 *
 * <p>Promise P2 holds as long as the database keeps what it committed. With {@link Builder#inTransaction()} and {@link #markApplied} the
 * effect of an ID is committed at most once whatever happens: a crash, a pause, a lost lease, a deleted record.
 *
 * <p>Every method throws {@link StorageUnavailableException} for whatever database or driver cannot do. A deadlock or a serialization
 * failure is retried first. The time of a statement is bounded by {@link Builder#statementTimeout}; how long to wait for a free
 * connection is the pool's to say, and should be bounded. Messages carry neither keys nor passwords.
 */
public final class JdbcIdempotenceStorage extends JdbcRecords {
    private static final int MAX_LIMIT = 10_000;

    private final @Nullable ExpiredRows expiredRows;

    private JdbcIdempotenceStorage(
            Database database, Tables tables, boolean inTransaction, @Nullable Duration cleanUpEvery) {
        super(database, tables, inTransaction);
        this.expiredRows = cleanUpEvery == null ? null : new ExpiredRows(cleanUpEvery, this::deleteExpired);
    }

    /**
     * A storage in the database of a {@code DataSource}.
     *
     * @param dataSource the application's, best a pool; see this class for what it must not be
     * @return a builder with the defaults
     */
    public static Builder builder(DataSource dataSource) {
        return new Builder(dataSource);
    }

    /**
     * Deletes rows whose retention is over. They count as absent already; this frees their space. Several instances may do it at once.
     *
     * @param limit how many rows at most, of each table; 1 to 10,000. Small batches hold locks for a short time
     * @return how many were deleted; call again at once when it is {@code limit} or more
     * @throws IllegalArgumentException if {@code limit} is out of range
     * @throws StorageUnavailableException if the database cannot
     */
    public int deleteExpired(int limit) {
        if (limit < 1 || limit > MAX_LIMIT) {
            throw new IllegalArgumentException("limit must be 1 to " + MAX_LIMIT + ", got " + limit);
        }
        Sql.Parameters parameters = new Sql.Parameters().with("limit", limit);
        return run("delete expired records", session -> {
            int marks = inTransaction ? session.update(sql().deleteExpiredMarks, parameters) : 0;
            return marks + session.update(sql().deleteExpired, parameters);
        });
    }

    /**
     * Marks an execution applied, inside the business transaction: the mark and the business data are committed together or not
     * at all. Of all executions of an ID only one can commit its mark. Call it before or among the business statements, once per
     * transaction. A transaction that failed may be retried in the same execution: the last call decides what becomes of the ID.
     *
     * <p>Waits, for at most the statement timeout, while another execution of the same ID has marked itself and not yet ended its
     * transaction.
     *
     * @param connection of the business transaction, on this storage's database; auto-commit is off. It is neither committed nor
     *     closed here
     * @param execution the one that runs, as given to the handler
     * @throws ExecutionOvertakenException if another execution was applied or this one no longer holds its claim. The business
     *     transaction must roll back; the ID is released, whatever the policy says, and the caller gets the other one's answer or
     *     is told to ask again
     * @throws StorageUnavailableException if the database cannot; the business transaction must roll back
     * @throws IllegalStateException if this storage was built without {@link Builder#inTransaction()}, or auto-commit is on
     */
    public void markApplied(Connection connection, IdempotentExecution execution) {
        try {
            markApplied(connection, execution.key(), execution.fence());
            // What an earlier transaction of this execution met no longer counts.
            execution.applied();
        } catch (ExecutionOvertakenException e) {
            // Kept, this failure would be replayed as the answer of the execution that was applied.
            execution.overtaken();
            throw e;
        } catch (StorageUnavailableException e) {
            execution.release();
            throw e;
        }
    }

    /**
     * As {@link #markApplied(Connection, IdempotentExecution)}, for those who hold the claim themselves. They must release it
     * after a failure.
     *
     * @param connection of the business transaction
     * @param key of the claim
     * @param fence of the claim
     * @throws ExecutionOvertakenException if another execution was applied or the claim is no longer held
     * @throws StorageUnavailableException if the database cannot
     * @throws IllegalStateException if this storage was built without {@link Builder#inTransaction()}, or auto-commit is on
     */
    public void markApplied(Connection connection, StorageKey key, long fence) {
        if (!inTransaction) {
            throw new IllegalStateException("build the storage with inTransaction() to mark executions applied");
        }
        AppliedMark mark = new AppliedMark(key, fence);
        try {
            if (connection.getAutoCommit()) {
                throw new IllegalStateException(
                        "markApplied belongs into the business transaction, but the connection has auto-commit on");
            }
            if (!database.on(connection, sql().dialect(), session -> mark.set(session, sql()))) {
                throw new ExecutionOvertakenException(
                        "this execution lost its claim, or another one of the same ID was applied; roll back");
            }
        } catch (SQLException e) {
            throw Database.unavailable("mark an execution applied", e);
        }
    }

    /** Half of the statement timeout, at least one second. */
    @Override
    public Duration slowCall() {
        return Duration.ofMillis(Math.max(1_000, database.timeoutSeconds() * 500L));
    }

    /** Stops the cleanup, if there is one; a batch under way ends within the statement timeout. The {@code DataSource} stays open. */
    @Override
    public void close() {
        if (expiredRows != null) {
            expiredRows.close();
        }
    }

    /** Names the kind of database, once it is known; no address. */
    @Override
    public String toString() {
        Dialect dialect = tables.dialect();
        return "JdbcIdempotenceStorage[" + (dialect == null ? "not connected yet" : dialect.title)
                + (inTransaction ? ", in transaction]" : "]");
    }

    /**
     * Builds a {@link JdbcIdempotenceStorage}. Not thread-safe. Defaults: table {@code idempotence_record}, applied table
     * {@code idempotence_applied}, both must exist; statement timeout 2 s; not in transaction; cleanup every 5 minutes; eager start.
     */
    public static final class Builder {
        private static final Duration CLEAN_UP_EVERY = Duration.ofMinutes(5);

        private final DataSource dataSource;
        private TableName table = new TableName("idempotence_record");
        private TableName appliedTable = new TableName("idempotence_applied");
        private boolean createIfMissing;
        private boolean inTransaction;
        private Duration statementTimeout = Duration.ofSeconds(2);
        private Duration cleanUpEvery = CLEAN_UP_EVERY;
        private boolean lazyStart;

        private Builder(DataSource dataSource) {
            this.dataSource = Objects.requireNonNull(dataSource, "dataSource");
        }

        /**
         * Names the table of the records.
         *
         * @param name 1 to 48 letters, digits or underscores, no digit first; a schema of the same form and a dot may stand
         *     before it. Default {@code idempotence_record}
         * @return this
         * @throws IllegalArgumentException if it is not of that form
         */
        public Builder table(String name) {
            this.table = new TableName(name);
            return this;
        }

        /**
         * Names the table of the applied executions.
         *
         * @param name as for {@link #table}; default {@code idempotence_applied}
         * @return this
         * @throws IllegalArgumentException if it is not of that form
         */
        public Builder appliedTable(String name) {
            this.appliedTable = new TableName(name);
            return this;
        }

        /**
         * Creates the tables and their indexes by the shipped schema file unless they exist. The database user needs the right
         * to. Without it, run {@code io/idempotence/server/jdbc/postgresql.sql}, {@code mysql.sql} or {@code h2.sql} of this jar
         * yourself.
         *
         * @return this
         */
        public Builder createIfMissing() {
            this.createIfMissing = true;
            return this;
        }

        /**
         * Bounds the time of each statement. The network gets a second more before the connection is given up.
         *
         * @param timeout rounded up to whole seconds; 1 s to 1 hour, default 2 s
         * @return this
         * @throws IllegalArgumentException if out of range
         */
        public Builder statementTimeout(Duration timeout) {
            if (timeout.compareTo(Duration.ofSeconds(1)) < 0 || timeout.compareTo(Duration.ofHours(1)) > 0) {
                throw new IllegalArgumentException("statementTimeout must be 1 s to 1 hour, got " + timeout);
            }
            this.statementTimeout = timeout;
            return this;
        }

        /**
         * Lets business code mark its executions applied within its own transaction on this database, see {@link #markApplied}.
         * Then a claim whose owner broke off is taken over if its mark was not committed, and counts as completed without a
         * result if it was, whatever the policy says about abandoned claims.
         *
         * <p>Every handler behind this storage must mark what it does: one that does not may run twice. All its effects must be
         * in that one transaction. The retention must be longer than the longest execution.
         *
         * @return this
         */
        public Builder inTransaction() {
            this.inTransaction = true;
            return this;
        }

        /**
         * Says how often expired rows are deleted: in batches of 1,000, on a daemon thread named {@code idempotence-cleanup} that
         * {@link JdbcIdempotenceStorage#close} stops. Any number of instances may do so at once.
         *
         * @param interval at least 1 s, or zero for never; default 5 minutes. A batch comes half an interval to a whole one after the
         *     one before, and the next one soon after a full one
         * @return this
         * @throws IllegalArgumentException if out of range
         */
        public Builder cleanUpEvery(Duration interval) {
            if (!interval.isZero() && interval.compareTo(Duration.ofSeconds(1)) < 0) {
                throw new IllegalArgumentException(
                        "cleanUpEvery must be at least 1 s, or zero for never, got " + interval);
            }
            this.cleanUpEvery = Duration.ofMillis(interval.isZero() ? 0 : Millis.capped(interval));
            return this;
        }

        /**
         * Lets {@link #build} succeed while the database cannot be reached, so that the application starts without it. Every call
         * then checks first, until a check has succeeded; before that it throws {@link StorageUnavailableException}, having sent
         * nothing, also for a missing table. A failed check holds for a second. By default {@code build} itself checks.
         *
         * @return this
         */
        public Builder lazyStart() {
            this.lazyStart = true;
            return this;
        }

        /**
         * Connects, learns which database it is, and looks at the tables, unless {@link #lazyStart} leaves that to the first call.
         *
         * @return a storage; close it
         * @throws IllegalArgumentException if the database is not supported, or the {@code DataSource} lends the connection of the
         *     running transaction
         * @throws IllegalStateException if a table is missing or is not as the schema file says
         * @throws StorageUnavailableException if the database does not answer
         */
        public JdbcIdempotenceStorage build() {
            if (table.equals(appliedTable)) {
                throw new IllegalArgumentException("table and appliedTable must be two tables, both are " + table);
            }
            Lenders lenders = Lenders.of(dataSource);
            lenders.refuseTransactionAware();
            Database database = new Database(dataSource, statementTimeout);
            Tables tables =
                    new Tables(database, table, appliedTable, inTransaction, createIfMissing, lenders::warnOfLongWaits);
            if (!lazyStart) {
                tables.check();
            }
            return new JdbcIdempotenceStorage(
                    database, tables, inTransaction, cleanUpEvery.isZero() ? null : cleanUpEvery);
        }
    }
}
