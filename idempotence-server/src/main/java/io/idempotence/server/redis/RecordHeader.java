package io.idempotence.server.redis;

import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.RecordState;
import io.idempotence.server.storage.StorageKey;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Optional;

/** The first bytes of a record, as laid out in {@code claim.lua}. */
final class RecordHeader {
    private static final int FORMAT = 1;
    private static final int FENCE_AT = 2;
    private static final int BYTES = 54;
    private static final int BYTES_WITH_LEASE = BYTES + Long.BYTES;
    private static final long NO_KEY = -2;

    private RecordHeader() {}

    /** {@code ttlMillis} and {@code nowMillis} are the server's; a record without time to live counts as living 100 years. */
    static Optional<IdempotenceRecord> read(StorageKey key, byte[] head, long ttlMillis, long nowMillis) {
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
        char state = (char) head[1];
        int expectedBytes = switch (state) {
            case 'P', 'T', 'U' -> BYTES_WITH_LEASE;
            case 'R' -> BYTES;
            case 'C' -> head.length;
            default -> -1;
        };
        if (head.length != expectedBytes) {
            throw corrupt("its state or its length is wrong");
        }
        Duration leaseLeft = head.length == BYTES_WITH_LEASE && state != 'C'
                ? Duration.ofMillis(buffer.getLong(BYTES) - nowMillis)
                : Duration.ZERO;
        RecordState shown = switch (state) {
            case 'C' -> RecordState.COMPLETED;
            case 'R' -> RecordState.RELEASED;
            case 'U' -> RecordState.UNKNOWN;
            default -> leaseLeft.toMillis() > 0 ? RecordState.IN_PROGRESS : RecordState.ABANDONED;
        };
        Duration retentionLeft = ttlMillis < 0 ? Duration.ofDays(36_525) : Duration.ofMillis(ttlMillis);
        return Optional.of(new IdempotenceRecord(key, shown, fence, leaseLeft, retentionLeft));
    }

    /** What stands in a record behind format and state while the claim is its owner's, and after it has completed. */
    static byte[] claim(Claim claim) {
        return ByteBuffer.allocate(BYTES - FENCE_AT)
                .putInt((int) claim.fence())
                .putLong(claim.owner().high())
                .putLong(claim.owner().low())
                .put(claim.fingerprint().toBytes())
                .array();
    }

    private static CorruptRecordException corrupt(String what) {
        return new CorruptRecordException("a record in Redis cannot be read: " + what);
    }
}
