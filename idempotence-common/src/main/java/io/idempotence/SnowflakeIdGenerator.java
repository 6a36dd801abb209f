package io.idempotence;

import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/** A generator of IDs from 41 bits of milliseconds, 10 bits of node and 12 bits of sequence. Lock-free. */
final class SnowflakeIdGenerator implements IdempotenceIdGenerator {
    static final int MAX_NODE = 1023;
    private static final int NODE_BITS = 10;
    private static final int SEQUENCE_BITS = 12;
    private static final long SEQUENCE_MASK = (1L << SEQUENCE_BITS) - 1;
    private static final long MAX_MILLIS = (1L << 41) - 1;
    private static final long EPOCH = Instant.parse("2020-01-01T00:00:00Z").toEpochMilli();
    private static final Duration LONGEST_WAIT = Duration.ofSeconds(1);

    /** The generators of the system clock by node: two sequences of one node in one process would make equal IDs. At most 1024 entries. */
    private static final ConcurrentMap<Integer, SnowflakeIdGenerator> OF_SYSTEM_CLOCK = new ConcurrentHashMap<>();

    private final int node;
    private final Clock clock;

    /** Milliseconds and sequence of the last ID, without the node between them. Grows with every ID. */
    private final AtomicLong last = new AtomicLong(-1);

    SnowflakeIdGenerator(int node, Clock clock) {
        if (node < 0 || node > MAX_NODE) {
            throw new IllegalArgumentException("snowflake node must be 0 to " + MAX_NODE + ", got " + node);
        }
        this.node = node;
        this.clock = clock;
    }

    static SnowflakeIdGenerator ofSystemClock(int node) {
        return OF_SYSTEM_CLOCK.computeIfAbsent(node, n -> new SnowflakeIdGenerator(n, Clock.systemUTC()));
    }

    @Override
    public IdempotenceId generateId() {
        long giveUpAt = System.nanoTime() + LONGEST_WAIT.toNanos();
        while (true) {
            long now = clock.millis() - EPOCH;
            if (now < 0 || now > MAX_MILLIS) {
                throw new IllegalStateException(
                        "the clock is outside 2020 to 2089, the years of a snowflake ID; set the clock of this host");
            }
            long previous = last.get();
            long next = Math.max(previous + 1, now << SEQUENCE_BITS);
            // Never ahead of the clock: after a restart the milliseconds taken in advance would be used again.
            if (next >>> SEQUENCE_BITS <= now) {
                if (last.compareAndSet(previous, next)) {
                    return new IdempotenceId(Long.toString(join(next)));
                }
            } else if ((next >>> SEQUENCE_BITS) - now > LONGEST_WAIT.toMillis() || System.nanoTime() - giveUpAt > 0) {
                throw new IllegalStateException("the clock stepped back by "
                        + ((next >>> SEQUENCE_BITS) - now) + " ms; at most "
                        + LONGEST_WAIT.toMillis()
                        + " ms are waited out; let the time service slew the clock, not step it");
            } else {
                LockSupport.parkNanos(100_000);
            }
        }
    }

    private long join(long millisAndSequence) {
        long millis = millisAndSequence >>> SEQUENCE_BITS;
        return millis << (NODE_BITS + SEQUENCE_BITS) | (long) node << SEQUENCE_BITS | millisAndSequence & SEQUENCE_MASK;
    }
}
