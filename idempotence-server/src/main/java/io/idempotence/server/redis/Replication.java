package io.idempotence.server.redis;

import java.time.Duration;
import redis.clients.jedis.exceptions.JedisException;

/** How many replicas must have a write before it counts, and how long they may take. */
record Replication(int replicas, Duration timeout) {
    Replication {
        if (replicas < 1 || replicas > 100) {
            throw new IllegalArgumentException("replicas must be 1 to 100, got " + replicas);
        }
        if (timeout.compareTo(Duration.ofMillis(1)) < 0 || timeout.compareTo(Duration.ofSeconds(10)) > 0) {
            throw new IllegalArgumentException("the timeout for replicas must be 1 ms to 10 s, got " + timeout);
        }
    }

    /** Redis wrote, and too few replicas have it. */
    static final class TooFewException extends JedisException {
        private static final long serialVersionUID = 1L;

        private final transient Object answer;

        TooFewException(long had, int wanted, Object answer) {
            super(had + " of " + wanted + " replicas have the write");
            this.answer = answer;
        }

        /** What the script said. */
        Object answer() {
            return answer;
        }
    }
}
