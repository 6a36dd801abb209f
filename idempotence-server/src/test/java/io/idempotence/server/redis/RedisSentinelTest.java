package io.idempotence.server.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import io.idempotence.server.storage.WriteResult;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.Jedis;

/** Redis behind Sentinels, with waiting for replicas. */
@Tag("redis-7")
@Tag("jedis")
class RedisSentinelTest {
    static RedisIdempotenceStorage connect(EmbeddedRedisSentinel redis) {
        return EmbeddedRedis.builder(redis.addresses())
                .sentinel(EmbeddedRedisSentinel.NAME)
                .client(Rights.applicationAnd(List.of(redis.primary(), redis.replica()), "scan", "info", "wait"))
                .waitForReplicas(1, Duration.ofSeconds(5))
                .strict()
                .build();
    }

    @Test
    @DisplayName("P2: a claim that a replica has outlives its primary")
    void aClaimOutlivesItsPrimary() {
        try (EmbeddedRedisSentinel own = EmbeddedRedisSentinel.startQuick();
                RedisIdempotenceStorage storage = EmbeddedRedis.builder(own.addresses())
                        .sentinel(EmbeddedRedisSentinel.NAME)
                        .build();
                RedisIdempotenceStorage careful = connect(own)) {
            StorageKey completed = Claims.newKey();
            StorageKey claimed = Claims.newKey();
            careful.complete(Claims.claim(careful, completed), new byte[] {7}, Claims.RETENTION);
            Claim claim = Claims.claim(careful, claimed);

            own.primary().kill();

            await().ignoreExceptions().until(() -> {
                return storage.claim(Claims.request(claimed)) instanceof ClaimResult.InProgress;
            });
            assertThat(storage.claim(Claims.request(completed))).isInstanceOf(ClaimResult.Completed.class);
            assertThat(storage.complete(claim, new byte[] {8}, Claims.RETENTION))
                    .isEqualTo(new WriteResult.Done());
            // There is no replica any more: who insists on one is refused, and nothing runs.
            assertThatThrownBy(() -> careful.claim(Claims.request(Claims.newKey())))
                    .isInstanceOf(StorageUnavailableException.class);
        }
    }

    @Test
    void aPrimaryThatTheSentinelsDoNotHaveIsReported() {
        try (EmbeddedRedisSentinel redis = EmbeddedRedisSentinel.start()) {
            assertThatThrownBy(() -> RedisIdempotenceStorage.builder(redis.addresses())
                            .sentinel("orders")
                            .build())
                    .isInstanceOf(StorageUnavailableException.class)
                    .hasMessageContaining("Redis 'orders' of the Sentinels at " + redis.addresses());
        }
    }

    /** The driver loses a listener whose thread begins after the close: it then listens for ever. */
    @Test
    void storageThatDoesNotOpenLeavesNoListenerBehind() {
        try (EmbeddedRedis primary = EmbeddedRedis.start();
                EmbeddedRedis sentinel = EmbeddedRedis.startSentinel(EmbeddedRedisSentinel.NAME, primary)) {
            primary.kill();
            RedisIdempotenceStorage.Builder builder =
                    EmbeddedRedis.builder(sentinel.address()).sentinel(EmbeddedRedisSentinel.NAME);
            for (int i = 0; i < 100; i++) {
                assertThatThrownBy(builder::build).isInstanceOf(StorageUnavailableException.class);
            }
            LeftBehind.awaitNothing(sentinel);
        }
    }

    @Test
    void sentinelsMayRequireAPassword() {
        try (EmbeddedRedis primary = EmbeddedRedis.start();
                EmbeddedRedis sentinel = EmbeddedRedis.startSentinel(EmbeddedRedisSentinel.NAME, primary)) {
            try (Jedis jedis = sentinel.jedis()) {
                jedis.aclSetUser("default", "resetpass", ">secret");
            }
            RedisIdempotenceStorage.Builder builder =
                    EmbeddedRedis.builder(sentinel.address()).sentinel(EmbeddedRedisSentinel.NAME);
            assertThatThrownBy(builder::build).isInstanceOf(StorageUnavailableException.class);

            builder.sentinelClient(
                    EmbeddedRedis.patientClient().password("secret").build());
            try (RedisIdempotenceStorage storage = builder.build()) {
                Claims.claim(storage, Claims.newKey());
            }
        }
    }

    @Test
    void impossibleSettingsAreRefused() {
        RedisIdempotenceStorage.Builder builder = RedisIdempotenceStorage.builder("localhost:1");
        assertThatThrownBy(() -> builder.sentinelClient(DefaultJedisClientConfig.builder()
                        .socketTimeoutMillis(0)
                        .build()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("waits forever");
        assertThatThrownBy(() -> builder.sentinel(" "))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("often mymaster");
        assertThatThrownBy(() -> builder.waitForReplicas(0, Duration.ofSeconds(1)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("replicas must be 1 to 100, got 0");
        assertThatThrownBy(() -> builder.waitForReplicas(1, Duration.ZERO))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("1 ms to 10 s");
    }
}
