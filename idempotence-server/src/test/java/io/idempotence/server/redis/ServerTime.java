package io.idempotence.server.redis;

import java.time.Duration;
import java.util.List;
import org.awaitility.Awaitility;
import redis.clients.jedis.Jedis;

/** Waits that are measured by a server's own clock. */
public final class ServerTime {
    private ServerTime() {}

    /** Returns when this time has passed on the server. */
    public static void letPass(EmbeddedRedis redis, Duration duration) {
        try (Jedis jedis = redis.jedis()) {
            // Redis drops a key one millisecond after its time to live.
            long end = millis(jedis) + duration.toMillis() + 2;
            Awaitility.await()
                    .pollDelay(Duration.ZERO)
                    .pollInterval(Duration.ofMillis(5))
                    .pollInSameThread()
                    .until(() -> millis(jedis) >= end);
        }
    }

    private static long millis(Jedis jedis) {
        List<String> time = jedis.time();
        return Long.parseLong(time.get(0)) * 1000 + Long.parseLong(time.get(1)) / 1000;
    }
}
