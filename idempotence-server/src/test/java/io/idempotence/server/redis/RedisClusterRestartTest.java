package io.idempotence.server.redis;

import static org.awaitility.Awaitility.await;

import io.idempotence.server.redis.internal.jedis.ScriptedRedis;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.StorageUnavailableException;
import java.io.IOException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import redis.clients.jedis.HostAndPort;

/** A Cluster whose primary restarted and was replaced meanwhile. */
class RedisClusterRestartTest {
    private static final String NO_RIGHT_IS_MISSING = "*0\r\n";
    private static final String CLAIMED = ":1\r\n";

    private final AtomicReference<HostAndPort> primary = new AtomicReference<>();
    private final AtomicBoolean isStarting = new AtomicBoolean(true);

    private ScriptedRedis node(String scripts) {
        return new ScriptedRedis((command, out) -> ScriptedRedis.write(
                out,
                switch (command.name()) {
                    case "CLUSTER" -> slotsAt(primary.get());
                    case "EVAL", "EVALSHA" -> isStarting.get() ? NO_RIGHT_IS_MISSING : scripts;
                    default -> ScriptedRedis.usual(command);
                }));
    }

    private static String slotsAt(HostAndPort node) {
        return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:" + node.getPort() + "\r\n";
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"CLUSTERDOWN The cluster is down", "LOADING Redis is loading the dataset", "READONLY a replica"})
    void theNewPrimaryIsAsked(String error) throws IOException, InterruptedException {
        try (ScriptedRedis former = node("-" + error + "\r\n");
                ScriptedRedis next = node(CLAIMED)) {
            primary.set(former.address());
            String both = former.address() + ";" + next.address();
            try (RedisIdempotenceStorage storage = EmbeddedRedis.connect(both)) {
                isStarting.set(false);
                primary.set(next.address());
                await().ignoreExceptionsInstanceOf(StorageUnavailableException.class)
                        .until(() -> storage.claim(Claims.request(Claims.newKey())) instanceof ClaimResult.Claimed);
            }
        }
    }
}
