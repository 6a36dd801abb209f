package io.idempotence.server.redis;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.FormatOne;
import io.idempotence.server.storage.StorageKey;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Stream;
import org.assertj.core.api.Assertions;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.params.SetParams;

/** What other versions have stored in Redis. */
@Tag("redis-7")
class RedisFormatTest {
    private static EmbeddedRedis redis;
    private static RedisIdempotenceStorage storage;
    private static Jedis jedis;

    private final StorageKey key = Claims.newKey();
    private final byte[] rawKey = key.value().getBytes(StandardCharsets.US_ASCII);

    @BeforeAll
    static void start() {
        redis = EmbeddedRedis.start();
        storage = RedisIdempotenceStorage.connect(redis.address());
        jedis = redis.jedis();
    }

    @AfterAll
    static void stop() {
        jedis.close();
        storage.close();
        redis.close();
    }

    static Stream<List<String>> records() {
        return FormatOne.records("redis-format-1.txt");
    }

    @ParameterizedTest
    @MethodSource("records")
    void recordOfFormatOneIsRead(List<String> record) {
        byte[] value = HexFormat.of().parseHex(record.get(1));
        jedis.set(rawKey, value, SetParams.setParams().px(Claims.RETENTION.toMillis()));
        FormatOne.assertRead(record.get(0), storage, key);
    }

    @ParameterizedTest
    @MethodSource("records")
    void recordOfANewerFormatIsRefusedAndLeftAsItIs(List<String> record) {
        byte[] value = HexFormat.of().parseHex(record.get(1));
        value[0] = 2;
        jedis.set(rawKey, value);
        FormatOne.assertNewerFormatIsRefused(storage, key);
        Assertions.assertThat(jedis.get(rawKey)).isEqualTo(value);
        Assertions.assertThat(jedis.pttl(rawKey)).isEqualTo(-1);
    }

    /** A key that is made in another way would find none of the records there are. */
    @Test
    void keysAreMadeAsEver() {
        Assertions.assertThat(StorageKey.of("payments", "principal:ann", "", IdempotenceId.of("order-1"))
                        .value())
                .isEqualTo("idem:payments:L7tGrx7bMTh0Ihx_vMskzi0hUGc8VnQKpjskot5RKJ8");
    }
}
