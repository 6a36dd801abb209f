package io.idempotence.server.redis;

import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.StorageKey;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.Optional;

/** The header of a record, its first bytes, as laid out in {@code record.lua}. */
final class RecordHeader {
    private static final byte FORMAT = 2;
    private static final int FENCE_AT = 2;
    private static final int OWNER_AT = 6;
    private static final int BYTES = 54;
    private static final int BYTES_WITH_LEASE = BYTES + Long.BYTES;
    private static final long NO_KEY = -2;
    private static final Duration FOR_EVER = Duration.ofDays(36_525);

    private RecordHeader() {}

    /** Reads a header. A record without time to live counts as living 100 years, and so does its lease. */
    static Optional<IdempotenceRecord> read(StorageKey key, byte[] head, long ttlMillis) {
        if (ttlMillis == NO_KEY) {
            return Optional.empty();
        }
        if (head.length > 0 && head[0] != FORMAT) {
            throw corrupt("its format is " + (head[0] & 0xff) + ", this version reads " + FORMAT);
        }
        if (head.length < BYTES) {
            throw corrupt("it is too short");
        }
        ByteBuffer buffer = ByteBuffer.wrap(head);
        long fence = Integer.toUnsignedLong(buffer.getInt(FENCE_AT));
        Owner owner = new Owner(buffer.getLong(OWNER_AT), buffer.getLong(OWNER_AT + Long.BYTES));
        char state = (char) head[1];
        int expectedBytes = switch (state) {
            case 'P', 'T', 'U' -> BYTES_WITH_LEASE;
            case 'R' -> BYTES;
            case 'C', 'D' -> head.length;
            default -> -1;
        };
        if (head.length != expectedBytes) {
            throw corrupt("its state or its length is wrong");
        }
        Duration retentionLeft = ttlMillis < 0 ? FOR_EVER : Duration.ofMillis(ttlMillis);
        Duration leaseLeft = Duration.ZERO;
        if (state == 'P' || state == 'T' || state == 'U') {
            leaseLeft = retentionLeft.minusMillis(buffer.getLong(BYTES));
        }
        State shown = switch (state) {
            case 'C', 'D' -> State.COMPLETED;
            case 'R' -> State.RELEASED;
            case 'U' -> State.UNKNOWN;
            default -> leaseLeft.toMillis() > 0 ? State.IN_PROGRESS : State.ABANDONED;
        };
        return Optional.of(new IdempotenceRecord(key, shown, fence, owner, leaseLeft, retentionLeft));
    }

    /** What {@code delete-unchanged.lua} compares: the state, {@code A} if it is abandoned; fence and owner as stored. */
    static byte[] identity(IdempotenceRecord seen) {
        char state = switch (seen.state()) {
            case COMPLETED -> 'C';
            case RELEASED -> 'R';
            case UNKNOWN -> 'U';
            case IN_PROGRESS -> 'P';
            case ABANDONED -> 'A';
        };
        return ByteBuffer.allocate(1 + Integer.BYTES + Owner.BYTES)
                .put((byte) state)
                .putInt((int) seen.fence())
                .put(seen.owner().toBytes())
                .array();
    }

    /** Whether these bytes begin a record, and not a word. */
    static boolean begins(byte[] bytes) {
        return bytes.length >= BYTES && bytes[0] == FORMAT;
    }

    /** The result in a completed record. */
    static byte[] resultOf(byte[] record) {
        return Arrays.copyOfRange(record, BYTES, record.length);
    }

    /** The header of a first claim. */
    static byte[] claimed(ClaimRequest request, long leaseMillis, long retentionMillis) {
        return head('P', 1, request.owner(), request.fingerprint(), Long.BYTES)
                .putLong(Math.max(0, retentionMillis - leaseMillis))
                .array();
    }

    /** The header of a claimed record in another state, with room for {@code more} bytes. */
    static ByteBuffer head(char state, Claim claim, int more) {
        return head(state, claim.fence(), claim.owner(), claim.fingerprint(), more);
    }

    private static ByteBuffer head(char state, long fence, Owner owner, Fingerprint fingerprint, int more) {
        return ByteBuffer.allocate(BYTES + more)
                .put(FORMAT)
                .put((byte) state)
                .putInt((int) fence)
                .putLong(owner.high())
                .putLong(owner.low())
                .put(fingerprint.toBytes());
    }

    private static CorruptRecordException corrupt(String what) {
        return new CorruptRecordException("a record in Redis cannot be read: " + what);
    }
}
