package io.idempotence.server.jdbc;

import io.idempotence.internal.Millis;
import io.idempotence.server.IdempotentExecution;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.StorageUnavailableException;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Objects;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * A storage in a relational database: PostgreSQL 10, MySQL 8, MariaDB 10.5 or H2 2, or later. Thread-safe. One daemon thread deletes
 * expired rows, see {@link Builder#cleanUpEvery}.
 *
 * <p><b>Records.</b> One row per ID. Each call is one statement where the database allows it ({@code docs/storage-jdbc.md} lists the
 * exceptions). Each statement is a transaction of its own, correct at every isolation level from READ COMMITTED on. All times are the
 * database's.
 *
 * <p><b>The {@code DataSource}</b> may be any, and is never closed here. Connections are used with auto-commit and returned in the state
 * in which they were borrowed. The {@code DataSource} must not lend the connection of the running transaction, as Spring's {@code
 * TransactionAwareDataSourceProxy} does, because records must survive a rollback of the business transaction. {@link Builder#build}
 * refuses such a proxy. Each call refuses a connection with a running transaction: it throws {@link StorageUnavailableException} and does
 * not touch the transaction.
 *
 * <p><b>Guarantees.</b> Promise P2 holds as long as the database keeps what it committed. With {@link Builder#inTransaction()} and {@link
 * #markApplied}, the effect of an ID is committed at most once whatever happens: a crash, a pause, a lost lease, a record that is deleted
 * before its mark is set.
 *
 * <p><b>Failures.</b> Every method throws {@link StorageUnavailableException} for any {@link java.sql.SQLException}, and if no connection
 * can be borrowed. A deadlock or a serialization failure is retried first. {@link Builder#statementTimeout} bounds each statement. The pool
 * bounds the wait for a free connection: set a limit there. Messages contain neither keys nor passwords.
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
     * A builder with every default.
     *
     * @param dataSource the application's, ideally a connection pool; the class comment describes the kind that is refused
     */
    public static Builder builder(DataSource dataSource) {
        return new Builder(dataSource);
    }

    /**
     * Deletes rows whose retention is over. They already count as absent; this frees their space. Several instances may call it at once.
     *
     * @param limit how many rows of each table at most; 1 to 10,000. Small batches hold locks for a short time
     * @return how many rows were deleted; if {@code limit} or more, there may be more of them
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
     * Marks an execution as applied, inside the business transaction. The mark and the business data are committed together or not at
     * all, and only one execution of an ID can commit its mark. Call it before or among the business statements, once per transaction. A
     * failed transaction may be retried in the same execution: the last call decides what happens to the ID.
     *
     * <p>Waits while another execution of the same ID has marked itself and its transaction is open, at most for the statement timeout.
     *
     * @param connection of the business transaction, on this storage's database, with auto-commit off. It is neither committed nor closed
     *     here
     * @param execution the running execution, as the handler gets it
     * @throws ExecutionOvertakenException if another execution was applied, or if this one no longer holds its claim. Roll the business
     *     transaction back. The ID is released, whatever the policy says. The caller gets the other execution's response if there is one.
     *     Otherwise a request is refused as in progress, and {@code execute} throws this exception
     * @throws StorageUnavailableException if the database cannot. Roll the business transaction back: the ID is released, whatever the
     *     policy says, unless a later call decides otherwise
     * @throws IllegalStateException if this storage was built without {@link Builder#inTransaction()}, or auto-commit is on
     */
    public void markApplied(Connection connection, IdempotentExecution execution) {
        try {
            markApplied(connection, execution.claim());
            // This revokes what an earlier transaction of this execution reported.
            execution.mayTakeEffect();
        } catch (ExecutionOvertakenException e) {
            // If the ID were kept, this failure would be replayed as the response of the applied execution.
            execution.overtaken();
            throw e;
        } catch (StorageUnavailableException e) {
            execution.release();
            throw e;
        }
    }

    /**
     * Like {@link #markApplied(Connection, IdempotentExecution)}, for callers that hold the claim themselves. They must release it after
     * a failure.
     *
     * @param connection of the business transaction, with auto-commit off
     * @param claim the claim that the caller holds
     * @throws ExecutionOvertakenException if another execution was applied, or if the claim is no longer held
     * @throws StorageUnavailableException if the database cannot
     * @throws IllegalStateException if this storage was built without {@link Builder#inTransaction()}, or auto-commit is on
     */
    public void markApplied(Connection connection, Claim claim) {
        if (!inTransaction) {
            throw new IllegalStateException("build the storage with inTransaction() to mark executions applied");
        }
        try {
            if (connection.getAutoCommit()) {
                throw new IllegalStateException(
                        "markApplied must be called inside the business transaction, but the connection has auto-commit on; call"
                                + " setAutoCommit(false) first");
            }
            if (!database.on(connection, sql().dialect(), session -> mark(session, claim))) {
                throw new ExecutionOvertakenException(
                        "this execution lost its claim, or another one of the same ID was applied; roll back");
            }
        } catch (SQLException e) {
            throw JdbcErrors.unavailable("mark an execution applied", e);
        }
    }

    /**
     * Sets the mark in the transaction of the session. Reading the record locks nothing, so that others can read and renew it. The primary
     * key of the marks decides: there is at most one for each ID.
     *
     * @return false if the claim is no longer held, or another execution was applied
     */
    private boolean mark(Session session, Claim claim) throws SQLException {
        Sql.Parameters parameters = of(claim);
        boolean held = session.query(sql().held, parameters, rows -> {
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
                && (session.insert(sql().mark, parameters)
                        || (session.update(sql().forgetExpiredMark, parameters) == 1
                                && session.insert(sql().mark, parameters)));
    }

    /** {@return whether this storage is in in-transaction mode, by {@link Builder#inTransaction()}} */
    public boolean isInTransaction() {
        return inTransaction;
    }

    /** {@return the database of the records, as passed to {@link #builder}} */
    public DataSource dataSource() {
        return database.dataSource();
    }

    /** Half of the statement timeout, at least one second. */
    @Override
    public Duration slowCall() {
        return Duration.ofMillis(Math.max(1_000, database.timeoutSeconds() * 500L));
    }

    /** Stops the cleanup, if there is one. A running batch ends within the statement timeout. The {@code DataSource} stays open. */
    @Override
    public void close() {
        if (expiredRows != null) {
            expiredRows.close();
        }
    }

    /** The kind of database, if it is known, without an address. */
    @Override
    public String toString() {
        Dialect dialect = tables.dialect();
        return "JdbcIdempotenceStorage[" + (dialect == null ? "not connected yet" : dialect.title)
                + (inTransaction ? ", in transaction]" : "]");
    }

    /**
     * A builder of a {@link JdbcIdempotenceStorage}. Its setters return it. Not thread-safe.
     *
     * <p>Defaults: table {@code idempotence_record} and applied table {@code idempotence_applied}, which must exist; statement timeout 2 s;
     * not in transaction; cleanup every 5 minutes; eager start.
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
         * Sets the table of the records.
         *
         * @param name 1 to 48 letters, digits or underscores, no digit first; optionally after a schema of the same form and a dot.
         *     Default {@code idempotence_record}
         * @throws IllegalArgumentException if {@code name} is not of that form
         */
        public Builder table(String name) {
            this.table = new TableName(name);
            return this;
        }

        /**
         * Sets the table of the marks of applied executions.
         *
         * @param name 1 to 48 letters, digits or underscores, no digit first; optionally after a schema of the same form and a dot.
         *     Default {@code idempotence_applied}
         * @throws IllegalArgumentException if {@code name} is not of that form
         */
        public Builder appliedTable(String name) {
            this.appliedTable = new TableName(name);
            return this;
        }

        /**
         * Creates the tables and their indexes unless they exist. The database user needs the right to do so. Otherwise run {@code
         * io/idempotence/server/jdbc/postgresql.sql}, {@code mysql.sql} or {@code h2.sql} of this jar yourself.
         */
        public Builder createIfMissing() {
            this.createIfMissing = true;
            return this;
        }

        /**
         * Bounds each statement. A connection without a response is given up two seconds later.
         *
         * @param timeout rounded up to whole seconds; 1 s to 1 hour, default 2 s
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
         * Lets business code mark its executions as applied within its own transaction on this database, see {@link #markApplied}. An
         * abandoned claim is then taken over if its mark was not committed. If its mark was committed, the ID counts as completed without a
         * result. Both hold whatever the policy says about abandoned claims.
         *
         * <p>Every handler behind this storage must mark its execution; a handler that does not may run twice. All effects of a handler
         * must be in the marked transaction. The retention must be longer than the longest execution.
         *
         * <p>The Spring Boot starter marks transactions by itself only if it finds this storage: as a bean, or behind proxies of Spring AOP.
         * If it is not a bean and another class delegates to it, nothing is marked, and a committed operation runs again after a crash.
         */
        public Builder inTransaction() {
            this.inTransaction = true;
            return this;
        }

        /**
         * Sets how often expired rows are deleted: in batches of at most 1,000 rows of each table, on a daemon thread named {@code
         * idempotence-cleanup} that {@link JdbcIdempotenceStorage#close} stops. Any number of instances may do so at once.
         *
         * @param interval at least 1 s, or zero for never; default 5 minutes. The next batch runs after half an interval to a whole one,
         *     after a full batch sooner
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
         * Lets {@link #build} succeed while the database cannot be reached, so that the application starts without it. Calls then make the
         * check of {@code build} themselves, until one succeeds. Before that they throw {@link StorageUnavailableException} and nothing is
         * written, also for a missing table. A failed check is repeated after one second.
         */
        public Builder lazyStart() {
            this.lazyStart = true;
            return this;
        }

        /**
         * Connects, detects the kind of database, and checks the tables, unless {@link #lazyStart} leaves that to the first call.
         *
         * @return a storage; close it
         * @throws IllegalArgumentException if the database is not supported, if the {@code DataSource} lends the connection of the running
         *     transaction, or if both tables have the same name
         * @throws IllegalStateException if a table is missing, differs from the schema file, or can have several rows per ID
         * @throws StorageUnavailableException if the database does not respond, or refuses the user or a right that {@code build} needs. Never
         *     with {@link #lazyStart}
         */
        public JdbcIdempotenceStorage build() {
            if (table.equals(appliedTable)) {
                throw new IllegalArgumentException(
                        "table and appliedTable must be two tables, but both are " + table + "; rename one");
            }
            DataSourceChain chain = DataSourceChain.of(dataSource);
            chain.refuseTransactionAware();
            Database database = new Database(dataSource, statementTimeout);
            Tables tables =
                    new Tables(database, table, appliedTable, inTransaction, createIfMissing, chain::warnOfLongWaits);
            if (!lazyStart) {
                tables.check();
            }
            return new JdbcIdempotenceStorage(
                    database, tables, inTransaction, cleanUpEvery.isZero() ? null : cleanUpEvery);
        }
    }
}
