package io.idempotence.server.jdbc;

import io.idempotence.internal.Millis;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import io.idempotence.server.storage.StoredRecord;
import io.idempotence.server.storage.StoredRecord.Phase;
import io.idempotence.server.storage.WriteResult;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The records in a database: the statements of each call. */
abstract class JdbcRecords implements IdempotenceStorage {
    private static final Logger LOG = LoggerFactory.getLogger(JdbcIdempotenceStorage.class);
    private static final int MAX_TRIES = 20;

    /** A statement of this many bytes or fewer fits into the packets of every server in use. */
    private static final long SMALL_STATEMENT = 1 << 20;

    /** How long a statement is beside its result, rounded up. */
    private static final int BESIDE_RESULT = 4096;

    private static final Sql MAX_PACKET = new Sql("SELECT @@max_allowed_packet");

    final Database database;
    final Tables tables;
    final boolean inTransaction;

    JdbcRecords(Database database, Tables tables, boolean inTransaction) {
        this.database = database;
        this.tables = tables;
        this.inTransaction = inTransaction;
    }

    @Override
    public ClaimResult claim(ClaimRequest asked) {
        Sql.Parameters parameters = id(asked.key())
                .with("owner", asked.owner().toBytes())
                .with("fingerprint", asked.fingerprint().toBytes())
                .with("lease", Millis.capped(asked.lease()))
                .with("retention", Millis.capped(asked.retention()));
        return run("claim", session -> {
            // In transaction the mark decides, too. Except on PostgreSQL, an insert that reads marks would wait
            // for open transactions, so the mark is read first.
            boolean claimed = (!inTransaction || sql().dialect() == Dialect.POSTGRESQL)
                    && session.insert(sql().claim, parameters);
            return claimed
                    ? new ClaimResult.Claimed(new Claim(asked.key(), asked.fingerprint(), asked.owner(), 1), false)
                    : step(
                            session,
                            asked.key(),
                            true,
                            (row, before) -> StoredRecord.claim(before, permitted(asked, row), row.now()));
        });
    }

    /**
     * A claim request that may take over the claim in the row if that is allowed. In in-transaction mode, an owner that disappeared before
     * its business transaction committed has done nothing, so taking over is safe. For a claim of the other mode, that is not known.
     */
    private ClaimRequest permitted(ClaimRequest asked, Row row) {
        boolean mayTakeOver =
                row.isInTransaction() ? inTransaction && (asked.takeOver() || !asked.toGiveBack()) : asked.takeOver();
        return new ClaimRequest(
                asked.key(), asked.fingerprint(), asked.owner(), asked.lease(), asked.retention(), mayTakeOver);
    }

    @Override
    public WriteResult complete(Claim claim, byte[] result, Duration retention) {
        return finish("complete", claim, Phase.COMPLETED, result, retention);
    }

    @Override
    public WriteResult completeProvisionally(Claim claim, byte[] result, Duration retention) {
        return finish("complete provisionally", claim, Phase.PROVISIONAL, result, retention);
    }

    @Override
    public WriteResult release(Claim claim, Duration retention) {
        return finish("release", claim, Phase.RELEASED, null, retention);
    }

    @Override
    public WriteResult markUnknown(Claim claim, Duration retention) {
        return finish("mark unknown", claim, Phase.UNKNOWN, null, retention);
    }

    @Override
    public WriteResult renew(Claim claim, Duration lease) {
        long millis = Millis.checked("lease", lease);
        return write(
                "renew",
                claim,
                sql().renew,
                of(claim).with("lease", millis),
                (row, before) -> StoredRecord.renew(before, claim, row.now() + millis));
    }

    private WriteResult finish(String action, Claim claim, Phase phase, byte @Nullable [] result, Duration retention) {
        long millis = Millis.checked("retention", retention);
        Sql.Parameters parameters = of(claim)
                .with("state", Row.letter(phase))
                .with("fingerprint", claim.fingerprint().toBytes())
                .with("result", result)
                .with("unknown", phase == Phase.UNKNOWN ? 1 : 0)
                .with("retention", millis);
        try {
            return write(
                    action,
                    claim,
                    sql().finish,
                    parameters,
                    (row, before) -> StoredRecord.finish(before, claim, phase, result, row.now(), row.now() + millis));
        } catch (StorageUnavailableException e) {
            if (result == null || JdbcErrors.isNotOfSize(e) || !mayExceedPacket(result)) {
                throw e;
            }
            LOG.warn(
                    "a result of {} bytes could not be written, and with escapes it may exceed max_allowed_packet; it is not stored,"
                            + " and duplicates are refused as result-unavailable; raise max_allowed_packet to twice the largest result,"
                            + " or lower maxResponseBody of the filter",
                    result.length,
                    e);
            return finish(action, claim, phase, ClaimResult.noResult(), retention);
        }
    }

    /**
     * Whether a write may have failed because of the size of its result. A retry would then fail in the same way. Few exceptions rule
     * that out, because MySQL and MariaDB may just close the connection. A size below the limit does not either, because the driver may
     * escape each byte.
     */
    private boolean mayExceedPacket(byte[] result) {
        long most = 2L * result.length + BESIDE_RESULT;
        if (sql().dialect() != Dialect.MYSQL || most <= SMALL_STATEMENT) {
            return false;
        }
        try {
            return most > run("report its max_allowed_packet", JdbcRecords::maxPacket);
        } catch (StorageUnavailableException outage) {
            return false;
        }
    }

    private static long maxPacket(Session session) throws SQLException {
        return session.query(MAX_PACKET, new Sql.Parameters(), rows -> {
            rows.next();
            return rows.getLong(1);
        });
    }

    /** Writes as the holder of a live claim, in one statement. Only if that changes nothing, the row is read to find the reason. */
    private WriteResult write(
            String action, Claim claim, Sql own, Sql.Parameters parameters, Transition<WriteResult> otherwise) {
        return run(
                action,
                session -> session.update(own, parameters) == 1
                        ? new WriteResult.Done()
                        : step(session, claim.key(), false, otherwise));
    }

    /** Runs statements after the check of the tables, so that the check does not need a second connection. */
    final <T> T run(String action, Database.SqlWork<T> work) {
        tables.statements();
        return database.run(action, work);
    }

    final Statements sql() {
        return tables.statements();
    }

    /** A transition of a record. */
    @FunctionalInterface
    private interface Transition<A> {
        StoredRecord.Step<A> from(Row row, @Nullable StoredRecord before);
    }

    /**
     * Reads the record, applies a transition, and replaces the record if it has not changed. Decisions by the clock stay valid: a lease or
     * a retention that is over comes back only by a change of the row.
     *
     * @param settled whether a committed execution counts as completed, whatever its record shows
     */
    private <A> A step(Session session, StorageKey key, boolean settled, Transition<A> transition) throws SQLException {
        Sql.Parameters id = id(key);
        for (int tried = 0; tried < MAX_TRIES; tried++) {
            Row row = session.query(sql().look, id, Row::only);
            StoredRecord before = settled ? row.settled() : row.stored();
            if (before != null
                    && (before.phase() == Phase.COMPLETED || before.phase() == Phase.PROVISIONAL)
                    && before.result() == null) {
                throw Row.corrupt("it is completed and has no result");
            }
            StoredRecord.Step<A> step = transition.from(row, before);
            StoredRecord after = step.after();
            if (after == null || after.equals(before) || store(session, key, row, after)) {
                return step.reply();
            }
        }
        throw changedTooOften();
    }

    private static StorageUnavailableException changedTooOften() {
        return new StorageUnavailableException(
                "a record changed in each of " + MAX_TRIES + " tries between its read and its write; retry later",
                null);
    }

    private boolean store(Session session, StorageKey key, Row row, StoredRecord after) throws SQLException {
        return row.exists()
                ? session.update(
                                sql().replace,
                                row.replacedBy(after, inTransaction).with("id", key.value()))
                        == 1
                : session.insert(
                        sql().insert, Row.parameters(after, inTransaction).with("id", key.value()));
    }

    @Override
    public Optional<IdempotenceRecord> find(StorageKey key) {
        Row row = run("find", session -> session.query(sql().find, id(key), Row::only));
        return Optional.ofNullable(row.settled()).map(record -> record.seenAt(key, row.now()));
    }

    @Override
    public Stream<IdempotenceRecord> list(String namespace) {
        String prefix = StorageKey.prefix(namespace);
        return Stream.iterate(
                        Optional.of(page(prefix, prefix)),
                        Optional::isPresent,
                        before -> before.flatMap(RecordPage::last).map(last -> page(last, prefix)))
                .flatMap(page -> page.orElseThrow().records().stream());
    }

    private RecordPage page(String after, String prefix) {
        Sql.Parameters parameters = new Sql.Parameters().with("after", after).with("limit", RecordPage.SIZE);
        return run("list", session -> session.query(sql().list, parameters, rows -> RecordPage.read(rows, prefix)));
    }

    /**
     * A page of records, ordered by key.
     *
     * @param records the records
     * @param last the key after which the next page begins; empty if this is the last page
     */
    private record RecordPage(List<IdempotenceRecord> records, Optional<String> last) {
        static final int SIZE = 200;

        /**
         * Reads the keys with a prefix and leaves out others. In collations other than that of the schema file, a semicolon may sort before
         * a colon, and keys of both cases are mixed. A collation that ignores punctuation could end a list early.
         */
        static RecordPage read(ResultSet rows, String prefix) throws SQLException {
            List<IdempotenceRecord> records = new ArrayList<>();
            String last = "";
            int seen = 0;
            while (rows.next()) {
                seen++;
                last = rows.getString("id");
                if (!last.startsWith(prefix)) {
                    continue;
                }
                Row row = Row.read(rows);
                try {
                    StoredRecord record = row.settled();
                    if (record != null) {
                        records.add(record.seenAt(new StorageKey(last), row.now()));
                    }
                } catch (CorruptRecordException e) {
                    LOG.debug("a corrupt record is left out of a list: {}", e.getMessage());
                }
            }
            boolean mayHaveMore = seen == SIZE && last.regionMatches(true, 0, prefix, 0, prefix.length());
            return new RecordPage(records, mayHaveMore ? Optional.of(last) : Optional.empty());
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
                        true,
                        (row, before) ->
                                StoredRecord.resolve(before, fence, resolution, row.now(), row.now() + millis)));
    }

    @Override
    public boolean delete(StorageKey key) {
        return run("delete", session -> {
            int marks = inTransaction ? session.update(sql().deleteMark, id(key)) : 0;
            return marks + session.update(sql().delete, id(key)) > 0;
        });
    }

    @Override
    public boolean deleteUnchanged(StorageKey key, @Nullable IdempotenceRecord seen) {
        // The work is repeated after a deadlock, and must not take its own deletion of the row for a change.
        Row[] deleted = new Row[1];
        return run("delete", session -> {
            if (deleted[0] != null) {
                return deleteMarkOf(session, key, deleted[0]);
            }
            for (int tried = 0; tried < MAX_TRIES; tried++) {
                Row row = session.query(sql().find, id(key), Row::only);
                if (!row.isUnchanged(key, seen)) {
                    return false;
                }
                if (!row.exists()) {
                    if (deleteMark(session, key, row)) {
                        return true;
                    }
                } else if (session.update(sql().deleteUnchanged, row.unchanged().with("id", key.value())) == 1) {
                    // Until the mark is deleted, too, it keeps the ID from running.
                    deleted[0] = row;
                    return deleteMarkOf(session, key, row);
                }
            }
            throw changedTooOften();
        });
    }

    /** Deletes the mark of a deleted row. Returns false if another one is there: it was committed meanwhile, and the ID is completed. */
    private boolean deleteMarkOf(Session session, StorageKey key, Row row) throws SQLException {
        deleteMark(session, key, row);
        return !inTransaction || !session.query(sql().find, id(key), Row::only).isMarked();
    }

    /** Deletes the mark that was read with a row, if there was one and it has not changed. */
    private boolean deleteMark(Session session, StorageKey key, Row row) throws SQLException {
        Optional<Sql.Parameters> mark = row.unchangedMark();
        return mark.isPresent()
                && session.update(sql().deleteUnchangedMark, mark.get().with("id", key.value())) == 1;
    }

    private static Sql.Parameters id(StorageKey key) {
        return new Sql.Parameters().with("id", key.value());
    }

    static Sql.Parameters of(Claim claim) {
        return id(claim.key()).with("owner", claim.owner().toBytes()).with("fence", claim.fence());
    }
}
