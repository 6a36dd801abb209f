package io.idempotence.server.storage;

import java.nio.ByteBuffer;
import java.util.random.RandomGenerator;

/**
 * The random token of one attempt. Only the attempt whose token is in the record completes, renews or releases it (promise P3).
 *
 * @param high the first 64 bits
 * @param low the last 64 bits
 */
public record Owner(long high, long low) {
    /** The number of bytes of {@link #toBytes()}. */
    public static final int BYTES = 16;

    /**
     * A new token.
     *
     * @param random the source of its 128 bits; must not repeat across processes
     */
    public static Owner random(RandomGenerator random) {
        // All bytes at once, because each call of a SecureRandom has a fixed cost.
        byte[] bytes = new byte[BYTES];
        random.nextBytes(bytes);
        ByteBuffer longs = ByteBuffer.wrap(bytes);
        return new Owner(longs.getLong(), longs.getLong());
    }

    /** {@return the token as stored: 16 bytes, big-endian} */
    public byte[] toBytes() {
        return ByteBuffer.allocate(BYTES).putLong(high).putLong(low).array();
    }

    /** Hides the token: anyone who has it could finish another attempt's claim. */
    @Override
    public String toString() {
        return "Owner[…]";
    }
}
