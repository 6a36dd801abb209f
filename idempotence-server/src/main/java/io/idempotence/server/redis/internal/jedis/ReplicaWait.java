package io.idempotence.server.redis.internal.jedis;

import io.idempotence.server.redis.internal.Redis.TooFewReplicasException;
import java.time.Duration;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.exceptions.JedisDataException;

/** The number of replicas that must have a write before it counts, and the time that they may take. */
public record ReplicaWait(int replicas, Duration timeout) {
    public ReplicaWait {
        if (replicas < 1 || replicas > 100) {
            throw new IllegalArgumentException("replicas must be 1 to 100, got " + replicas);
        }
        if (timeout.compareTo(Duration.ofMillis(1)) < 0 || timeout.compareTo(Duration.ofSeconds(10)) > 0) {
            throw new IllegalArgumentException("the timeout for replicas must be 1 ms to 10 s, got " + timeout);
        }
    }

    RedisCall call() {
        return RedisCall.of(Protocol.Command.WAIT, Integer.toString(replicas), Long.toString(timeout.toMillis()));
    }

    /**
     * Checks the reply to {@link #call}.
     *
     * @param written the reply to the write before it
     * @throws TooFewReplicasException if it is not certain that enough replicas have the write
     */
    void check(Object reply, Object written) {
        if (reply instanceof JedisDataException error) {
            throw new TooFewReplicasException(
                    "the number of replicas that have the write is unknown: " + JedisErrors.reason(error), written);
        }
        long had = (Long) reply;
        if (had < replicas) {
            throw new TooFewReplicasException(had + " of " + replicas + " replicas have the write", written);
        }
    }
}
