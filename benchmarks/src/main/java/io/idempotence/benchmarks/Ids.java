package io.idempotence.benchmarks;

import java.nio.charset.StandardCharsets;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;

/** IDs of 36 characters that never come twice, made for next to nothing: a random part for the run, and a counter. */
final class Ids {
    private static final int COUNTER_DIGITS = 16;
    private static final String RUN = UUID.randomUUID().toString().substring(0, 36 - COUNTER_DIGITS);
    private static final AtomicLong NEXT = new AtomicLong();

    private Ids() {}

    static String next() {
        byte[] id = (RUN + "0".repeat(COUNTER_DIGITS)).getBytes(StandardCharsets.US_ASCII);
        writeNext(id, id.length);
        return new String(id, StandardCharsets.US_ASCII);
    }

    /** Writes a new counter over the one that ends at {@code end}. */
    static void writeNext(byte[] bytes, int end) {
        long counter = NEXT.getAndIncrement();
        for (int i = 1; i <= COUNTER_DIGITS; i++, counter >>>= 4) {
            bytes[end - i] = (byte) Character.forDigit((int) (counter & 15), 16);
        }
    }
}
