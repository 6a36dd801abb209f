package io.idempotence.server.redis;

import java.time.Duration;
import org.awaitility.Awaitility;
import redis.clients.jedis.Jedis;

/** The things that a storage must not leave behind when it is closed or could not be opened. */
final class LeftBehind {
    private LeftBehind() {}

    static void awaitNothing(EmbeddedRedis redis) {
        awaitNoConnections(redis);
        awaitNoPoolThread();
    }

    static void awaitNoConnections(EmbeddedRedis redis) {
        Awaitility.await().pollInterval(Duration.ofMillis(10)).until(() -> connections(redis) == 0);
    }

    static void awaitNoPoolThread() {
        Awaitility.await().pollInterval(Duration.ofMillis(10)).until(() -> poolThreads() == 0);
    }

    static long poolThreads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith("commons-pool"))
                .count();
    }

    /** Besides the one that asks. */
    static int connections(EmbeddedRedis redis) {
        try (Jedis jedis = redis.jedis()) {
            return jedis.clientList().split("\n", -1).length - 2;
        }
    }
}
