package io.idempotence.server.redis;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.awaitility.Awaitility;
import redis.clients.jedis.Jedis;

/** A primary, a replica, and three Sentinels that watch them: real processes, on free ports. */
public final class EmbeddedRedisSentinel implements AutoCloseable {
    /** What the Sentinels call their primary. */
    public static final String NAME = "payments";

    /** A busy machine pauses a primary for less, so that it is not replaced unasked. */
    static final Duration PATIENT = Duration.ofMinutes(1);

    private final EmbeddedRedis primary;
    private final EmbeddedRedis replica;
    private final List<EmbeddedRedis> sentinels = new ArrayList<>();

    private EmbeddedRedisSentinel(EmbeddedRedis primary, EmbeddedRedis replica) {
        this.primary = primary;
        this.replica = replica;
    }

    /** Starts them, and waits until every Sentinel reports all the others. Only a test replaces the primary. */
    public static EmbeddedRedisSentinel start() {
        return start(PATIENT);
    }

    /** The same, and the Sentinels soon replace a primary that is dead. */
    static EmbeddedRedisSentinel startQuick() {
        return start(Duration.ofMillis(500));
    }

    private static EmbeddedRedisSentinel start(Duration downAfter) {
        EmbeddedRedis primary = EmbeddedRedis.start("--appendonly", "yes");
        EmbeddedRedis replica = EmbeddedRedis.start(
                "--appendonly", "yes", "--replicaof", primary.host(), Integer.toString(primary.port()));
        EmbeddedRedisSentinel group = new EmbeddedRedisSentinel(primary, replica);
        try {
            for (int i = 0; i < 3; i++) {
                group.sentinels.add(EmbeddedRedis.startSentinel(NAME, primary, downAfter));
            }
            Awaitility.await()
                    .atMost(Duration.ofMinutes(1))
                    .until(() -> group.sentinels.stream().allMatch(EmbeddedRedisSentinel::knowsAll));
            return group;
        } catch (RuntimeException e) {
            group.close();
            throw e;
        }
    }

    static Path configuration(Path directory, EmbeddedRedis primary, String name, Duration downAfter) {
        try {
            return Files.writeString(
                    directory.resolve("sentinel.conf"),
                    String.join(
                            "\n",
                            "sentinel monitor " + name + " " + primary.host() + " " + primary.port() + " 2",
                            "sentinel down-after-milliseconds " + name + " " + downAfter.toMillis(),
                            "sentinel failover-timeout " + name + " 5000",
                            ""));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static boolean knowsAll(EmbeddedRedis sentinel) {
        try (Jedis jedis = sentinel.jedis()) {
            String line = jedis.info("sentinel")
                    .lines()
                    .filter(each -> each.startsWith("master0:"))
                    .findFirst()
                    .orElse("");
            return line.contains("status=ok") && line.contains("slaves=1") && line.contains("sentinels=3");
        }
    }

    /** {@code host:port;host:port;host:port} of the Sentinels. */
    public String addresses() {
        return String.join(";", sentinels.stream().map(EmbeddedRedis::address).toList());
    }

    /** The Sentinels. */
    List<EmbeddedRedis> sentinels() {
        return List.copyOf(sentinels);
    }

    /** The server that is the primary at first. */
    public EmbeddedRedis primary() {
        return primary;
    }

    /** The server that is its replica at first. */
    public EmbeddedRedis replica() {
        return replica;
    }

    @Override
    public void close() {
        sentinels.forEach(EmbeddedRedis::close);
        replica.close();
        primary.close();
    }
}
