package io.idempotence.server.jdbc;

import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StoredRecord;
import io.idempotence.server.storage.StoredRecord.Phase;
import java.nio.ByteBuffer;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The reply of a statement about one ID: its row, even one whose retention is over, and the mark of its business transaction, if that was
 * committed.
 *
 * @param now the time in ms of the database's clock
 * @param state null if there is no row
 * @param isInTransaction whether it is a claim of a storage in in-transaction mode
 */
record Row(
        long now,
        @Nullable String state,
        int format,
        boolean takenOver,
        boolean isInTransaction,
        long fence,
        byte[] owner,
        byte[] fingerprint,
        long leaseUntil,
        long expiresAt,
        byte @Nullable [] result,
        @Nullable Mark mark) {

    /** The mark of an execution that was committed in its business transaction. */
    private record Mark(long fence, byte[] fingerprint, long expiresAt) {}

    private static final byte[] NONE = {};
    /** Flags of the column {@code taken_over}. */
    private static final int TAKEN_OVER = 1;

    static final int IN_TRANSACTION = 2;

    /** Reads the first row of a reply that always has one. */
    static Row only(ResultSet rows) throws SQLException {
        if (!rows.next()) {
            throw new SQLException("a statement that always returns a row returned none");
        }
        return read(rows);
    }

    static Row read(ResultSet rows) throws SQLException {
        byte[] applied = rows.getBytes("applied_fingerprint");
        int flags = rows.getInt("taken_over");
        return new Row(
                rows.getLong("clock"),
                rows.getString("state"),
                rows.getInt("format"),
                (flags & TAKEN_OVER) != 0,
                (flags & IN_TRANSACTION) != 0,
                rows.getLong("fence"),
                orNone(rows.getBytes("owner")),
                orNone(rows.getBytes("fingerprint")),
                rows.getLong("lease_until"),
                rows.getLong("expires_at"),
                rows.getBytes("result"),
                applied == null
                        ? null
                        : new Mark(rows.getLong("applied_fence"), applied, rows.getLong("applied_expires_at")));
    }

    private static byte[] orNone(byte @Nullable [] bytes) {
        return bytes == null ? NONE : bytes;
    }

    /** The parameters that store a record as a row, on the condition that the row has not changed. */
    Sql.Parameters replacedBy(StoredRecord record, boolean inTransaction) {
        return unchanged(parameters(record, inTransaction));
    }

    /** The condition that the row has not changed. */
    Sql.Parameters unchanged() {
        return unchanged(new Sql.Parameters());
    }

    private Sql.Parameters unchanged(Sql.Parameters parameters) {
        return parameters
                .with("oldFormat", format)
                .with("oldState", state)
                .with("oldFence", fence)
                .with("oldOwner", owner)
                .with("oldFingerprint", fingerprint)
                .with("oldLeaseUntil", leaseUntil)
                .with("oldExpiresAt", expiresAt);
    }

    /** @param inTransaction whether the storage is in in-transaction mode */
    static Sql.Parameters parameters(StoredRecord record, boolean inTransaction) {
        boolean isMarked = inTransaction && record.phase() == Phase.CLAIMED;
        return new Sql.Parameters()
                .with("state", letter(record.phase()))
                .with("takenOver", (record.takenOver() ? TAKEN_OVER : 0) | (isMarked ? IN_TRANSACTION : 0))
                .with("fence", record.fence())
                .with("owner", record.owner().toBytes())
                .with("fingerprint", record.fingerprint().toBytes())
                .with("leaseUntil", record.leaseUntil())
                .with("expiresAt", record.expiresAt())
                .with("result", record.result());
    }

    static String letter(Phase phase) {
        return switch (phase) {
            case CLAIMED -> "P";
            case COMPLETED -> "C";
            case PROVISIONAL -> "D";
            case RELEASED -> "R";
            case UNKNOWN -> "U";
        };
    }

    /** The condition that the mark has not changed; empty if there is none. */
    Optional<Sql.Parameters> unchangedMark() {
        return Optional.ofNullable(mark)
                .map(seen -> new Sql.Parameters().with("markFence", seen.fence).with("markExpiresAt", seen.expiresAt));
    }

    boolean isMarked() {
        return mark != null;
    }

    boolean exists() {
        return state != null;
    }

    /**
     * The record, or null if there is none or its retention is over.
     *
     * @throws CorruptRecordException if it cannot be read
     */
    @Nullable
    StoredRecord stored() {
        if (state == null || expiresAt <= now) {
            return null;
        }
        if (format != 1) {
            throw corrupt("its format is " + format + ", this version reads 1");
        }
        if (fence < 1 || owner.length != Owner.BYTES || fingerprint.length != Fingerprint.BYTES) {
            throw corrupt("its fence, owner or fingerprint is wrong");
        }
        Phase phase = switch (state) {
            case "P" -> Phase.CLAIMED;
            case "C" -> Phase.COMPLETED;
            case "D" -> Phase.PROVISIONAL;
            case "R" -> Phase.RELEASED;
            case "U" -> Phase.UNKNOWN;
            default -> throw corrupt("its state is wrong");
        };
        ByteBuffer token = ByteBuffer.wrap(owner);
        return new StoredRecord(
                phase,
                takenOver,
                fence,
                new Owner(token.getLong(), token.getLong()),
                Fingerprint.of(fingerprint),
                leaseUntil,
                expiresAt,
                result);
    }

    /**
     * The record after its mark is applied: a committed execution took effect, whatever its record shows. While its claim is live, its own
     * result is still to come.
     *
     * @throws CorruptRecordException if it or its mark cannot be read
     */
    @Nullable
    StoredRecord settled() {
        StoredRecord stored = stored();
        if (mark == null) {
            return stored;
        }
        if (mark.fence < 1 || mark.fingerprint.length != Fingerprint.BYTES) {
            throw corrupt("the fence or fingerprint of its mark is wrong");
        }
        if (stored == null) {
            return applied(mark.fence, Fingerprint.of(mark.fingerprint), mark.expiresAt);
        }
        boolean completed = stored.phase() == Phase.COMPLETED || stored.phase() == Phase.PROVISIONAL;
        boolean running = stored.phase() == Phase.CLAIMED && leaseUntil > now;
        return completed || running ? stored : applied(fence, stored.fingerprint(), expiresAt);
    }

    /**
     * Whether the record is still as an operator saw it.
     *
     * @param seen null if it could not be read
     * @throws CorruptRecordException if it could be read, and cannot any more
     */
    boolean isUnchanged(StorageKey key, @Nullable IdempotenceRecord seen) {
        StoredRecord record;
        try {
            record = settled();
        } catch (CorruptRecordException e) {
            if (seen == null) {
                return true;
            }
            throw e;
        }
        return seen != null && record != null && seen.isUnchanged(record.seenAt(key, now));
    }

    private static StoredRecord applied(long fence, Fingerprint fingerprint, long expiresAt) {
        return new StoredRecord(
                Phase.COMPLETED, false, fence, StoredRecord.NOBODY, fingerprint, 0, expiresAt, ClaimResult.noResult());
    }

    static CorruptRecordException corrupt(String what) {
        return new CorruptRecordException("a record in the database cannot be read: " + what);
    }
}
