package io.idempotence.server.jdbc;

import io.idempotence.server.IdempotentExecution;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimRequest;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.Millis;
import io.idempotence.server.storage.Resolution;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import io.idempotence.server.storage.StoredRecord;
import io.idempotence.server.storage.StoredRecord.Phase;
import io.idempotence.server.storage.WriteResult;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

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
public final class JdbcIdempotenceStorage implements IdempotenceStorage {
    private static final Logger LOG = LoggerFactory.getLogger(JdbcIdempotenceStorage.class);
    private static final int MAX_TRIES = 20;
    private static final int PAGE = 200;
    private static final int MAX_LIMIT = 10_000;

    private final Database database;
    private final Tables tables;
    private final boolean inTransaction;
    private final @Nullable ExpiredRows expiredRows;

    private JdbcIdempotenceStorage(
            Database database, Tables tables, boolean inTransaction, @Nullable Duration cleanUpEvery) {
        this.database = database;
        this.tables = tables;
        this.inTransaction = inTransaction;
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

    @Override
    public ClaimResult claim(ClaimRequest asked) {
        // Whoever broke off before its business transaction committed has done nothing: taking over is safe.
        ClaimRequest request = new ClaimRequest(
                asked.key(),
                asked.fingerprint(),
                asked.owner(),
                asked.lease(),
                asked.retention(),
                asked.takeOver() || (inTransaction && !asked.toGiveBack()));
        Sql.Parameters parameters = id(request.key())
                .with("owner", request.owner().toBytes())
                .with("fingerprint", request.fingerprint().toBytes())
                .with("lease", Millis.capped(request.lease()))
                .with("retention", Millis.capped(request.retention()));
        return run("claim", session -> {
            boolean claimed = false;
            Row seen = null;
            if (sql().dialect() == Dialect.POSTGRESQL) {
                seen = session.query(sql().claim, parameters, Row::only);
                claimed = seen.claimed();
            } else if (!inTransaction) {
                // In transaction the mark is looked at first: an insert that looks itself would wait for open
                // transactions.
                claimed = session.insert(sql().claim, parameters);
            }
            return claimed
                    ? new ClaimResult.Claimed(
                            new Claim(request.key(), request.fingerprint(), request.owner(), 1), false)
                    : step(
                            session,
                            request.key(),
                            seen,
                            true,
                            (before, now) -> StoredRecord.claim(before, request, now));
        });
    }

    @Override
    public WriteResult complete(Claim claim, byte[] result, Duration retention) {
        long millis = Millis.checked("retention", retention);
        return finish(
                "complete",
                claim,
                Phase.COMPLETED,
                result,
                millis,
                (before, now) -> StoredRecord.complete(before, claim, result, now + millis));
    }

    @Override
    public WriteResult completeProvisionally(Claim claim, byte[] result, Duration retention) {
        long millis = Millis.checked("retention", retention);
        return finish(
                "complete provisionally",
                claim,
                Phase.PROVISIONAL,
                result,
                millis,
                (before, now) -> StoredRecord.completeProvisionally(before, claim, result, now + millis));
    }

    @Override
    public WriteResult release(Claim claim, Duration retention) {
        long millis = Millis.checked("retention", retention);
        return finish(
                "release",
                claim,
                Phase.RELEASED,
                null,
                millis,
                (before, now) -> StoredRecord.release(before, claim, now + millis));
    }

    @Override
    public WriteResult markUnknown(Claim claim, Duration retention) {
        long millis = Millis.checked("retention", retention);
        return finish(
                "mark unknown",
                claim,
                Phase.UNKNOWN,
                null,
                millis,
                (before, now) -> StoredRecord.markUnknown(before, claim, now, now + millis));
    }

    @Override
    public WriteResult renew(Claim claim, Duration lease) {
        long millis = Millis.checked("lease", lease);
        return write(
                "renew",
                claim,
                sql().renew,
                of(claim).with("lease", millis),
                (before, now) -> StoredRecord.renew(before, claim, now + millis));
    }

    private WriteResult finish(
            String action,
            Claim claim,
            Phase phase,
            byte @Nullable [] result,
            long retention,
            Transition<WriteResult> otherwise) {
        Sql.Parameters parameters = of(claim)
                .with("state", Row.letter(phase))
                .with("fingerprint", claim.fingerprint().toBytes())
                .with("result", result)
                .with("unknown", phase == Phase.UNKNOWN ? 1 : 0)
                .with("retention", retention);
        return write(action, claim, sql().finish, parameters, otherwise);
    }

    /** One statement for the holder of a live claim. Only where it changed nothing the row is read, to say why. */
    private WriteResult write(
            String action, Claim claim, Sql own, Sql.Parameters parameters, Transition<WriteResult> otherwise) {
        return run(
                action,
                session -> session.update(own, parameters) == 1
                        ? new WriteResult.Done()
                        : step(session, claim.key(), null, false, otherwise));
    }

    /** Checks first, so that no work has to while it holds a connection. */
    private <T> T run(String action, Database.Work<T> work) {
        tables.statements();
        return database.run(action, work);
    }

    private Statements sql() {
        return tables.statements();
    }

    /** What becomes of a record. */
    @FunctionalInterface
    private interface Transition<A> {
        StoredRecord.Step<A> from(@Nullable StoredRecord before, long now);
    }

    /**
     * Reads the record, decides, and replaces it if it is still as it was read. What was decided by the clock stays right: a lease or a
     * retention that is over comes back only by a change of the row.
     *
     * @param seen what was read already, or null
     * @param settled whether an execution that was committed counts as completed, whatever its record says
     */
    private <A> A step(Session session, StorageKey key, @Nullable Row seen, boolean settled, Transition<A> transition)
            throws SQLException {
        Sql.Parameters id = id(key);
        Row row = seen;
        for (int tried = 0; tried < MAX_TRIES; tried++) {
            if (row == null) {
                row = session.query(sql().look, id, Row::only);
            }
            StoredRecord before = settled ? row.settled() : row.stored();
            if (before != null
                    && (before.phase() == Phase.COMPLETED || before.phase() == Phase.PROVISIONAL)
                    && before.result() == null) {
                throw Row.corrupt("it is completed and has no result");
            }
            StoredRecord.Step<A> step = transition.from(before, row.now());
            StoredRecord after = step.after();
            if (after == null || after == before || store(session, key, row, after)) {
                return step.answer();
            }
            row = null;
        }
        throw new StorageUnavailableException(
                "the database could not keep up: a record changed " + MAX_TRIES + " times while it was looked at",
                null);
    }

    private boolean store(Session session, StorageKey key, Row row, StoredRecord after) throws SQLException {
        return row.exists()
                ? session.update(sql().replace, row.replacedBy(after).with("id", key.value())) == 1
                : session.insert(sql().insert, Row.parameters(after).with("id", key.value()));
    }

    @Override
    public Optional<IdempotenceRecord> find(StorageKey key) {
        Row row = run("find", session -> session.query(sql().find, id(key), Row::only));
        return Optional.ofNullable(row.settled()).map(record -> record.seenAt(key, row.now()));
    }

    @Override
    public Stream<IdempotenceRecord> list(String namespace) {
        String prefix = StorageKey.prefix(namespace);
        // The character after the colon: every key with the prefix is less.
        String end = prefix.substring(0, prefix.length() - 1) + ';';
        return Stream.iterate(
                        Optional.of(page(prefix, end)),
                        Optional::isPresent,
                        before -> before.flatMap(Page::last).map(last -> page(last, end)))
                .flatMap(page -> page.orElseThrow().records().stream());
    }

    private Page page(String after, String end) {
        Sql.Parameters parameters =
                new Sql.Parameters().with("after", after).with("end", end).with("limit", PAGE);
        return run("list", session -> session.query(sql().list, parameters, Page::read));
    }

    /**
     * Some records, in the order of their keys.
     *
     * @param last the key that the next page begins after, empty if this is the last page
     */
    private record Page(List<IdempotenceRecord> records, Optional<String> last) {
        static Page read(ResultSet rows) throws SQLException {
            List<IdempotenceRecord> records = new ArrayList<>();
            String last = "";
            int seen = 0;
            while (rows.next()) {
                seen++;
                last = rows.getString("id");
                Row row = Row.read(rows);
                try {
                    StoredRecord record = row.settled();
                    if (record != null) {
                        records.add(record.seenAt(new StorageKey(last), row.now()));
                    }
                } catch (CorruptRecordException e) {
                    LOG.debug("a record is left out of a list: {}", e.getMessage());
                }
            }
            return new Page(records, seen < PAGE ? Optional.empty() : Optional.of(last));
        }
    }

    @Override
    public boolean resolve(StorageKey key, long fence, Resolution resolution, Duration retention) {
        long millis = Millis.checked("retention", retention);
        return run(
                "resolve",
                session -> step(
                        session,
                        key,
                        null,
                        true,
                        (before, now) -> StoredRecord.resolve(before, fence, resolution, now, now + millis)));
    }

    @Override
    public boolean delete(StorageKey key) {
        return run("delete", session -> {
            int marks = inTransaction ? session.update(sql().deleteMark, id(key)) : 0;
            return marks + session.update(sql().delete, id(key)) > 0;
        });
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
        try {
            if (connection.getAutoCommit()) {
                throw new IllegalStateException(
                        "markApplied belongs into the business transaction, but the connection has auto-commit on");
            }
            boolean marked =
                    database.on(connection, sql().dialect(), session -> mark(session, id(key).with("fence", fence)));
            if (!marked) {
                throw new ExecutionOvertakenException(
                        "this execution lost its claim, or another one of the same ID was applied; roll back");
            }
        } catch (SQLException e) {
            throw Database.unavailable("mark an execution applied", e);
        }
    }

    /** The look holds no lock on the record, which others must be able to read and renew. The primary key of the marks decides. */
    private boolean mark(Session session, Sql.Parameters parameters) throws SQLException {
        boolean held = session.query(sql().held, parameters, rows -> {
            boolean found = rows.next();
            if (found) {
                parameters
                        .with("fingerprint", rows.getBytes("fingerprint"))
                        .with("expiresAt", rows.getLong("expires_at"));
            }
            return found;
        });
        // A mark in the way may be that of an earlier life of this ID, whose retention is over.
        return held
                && (session.insert(sql().mark, parameters)
                        || (session.update(sql().forgetExpiredMark, parameters) == 1
                                && session.insert(sql().mark, parameters)));
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

    private static Sql.Parameters id(StorageKey key) {
        return new Sql.Parameters().with("id", key.value());
    }

    private static Sql.Parameters of(Claim claim) {
        return id(claim.key()).with("owner", claim.owner().toBytes()).with("fence", claim.fence());
    }

    /**
     * Builds a {@link JdbcIdempotenceStorage}. Not thread-safe. Defaults: table {@code idempotence_record}, applied table
     * {@code idempotence_applied}, both must exist; statement timeout 2 s; not in transaction; cleanup every 5 minutes; eager start.
     */
    public static final class Builder {
        private static final Duration CLEAN_UP_EVERY = Duration.ofMinutes(5);
        /** A request that cannot get a connection holds its thread for so long. */
        private static final Duration LONG_WAIT = Duration.ofSeconds(5);

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
            Tables tables = new Tables(
                    database, table, appliedTable, inTransaction, createIfMissing, () -> warnOfLongWaits(lenders));
            if (!lazyStart) {
                tables.check();
            }
            return new JdbcIdempotenceStorage(
                    database, tables, inTransaction, cleanUpEvery.isZero() ? null : cleanUpEvery);
        }

        private static void warnOfLongWaits(Lenders lenders) {
            lenders.waitMillis().ifPresent(millis -> {
                if (millis == 0 || millis > LONG_WAIT.toMillis()) {
                    LOG.warn(
                            "the pool's connectionTimeout is {} ms: while the database is out of reach or the pool exhausted, each"
                                    + " request holds its thread that long; set it to {} ms or less, or give the records a"
                                    + " small pool of their own",
                            millis,
                            LONG_WAIT.toMillis());
                }
            });
        }
    }
}
