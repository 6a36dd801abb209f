package io.idempotence.server.redis;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.Formats;
import io.idempotence.server.storage.StorageKey;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Stream;
import org.assertj.core.api.Assertions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import redis.clients.jedis.params.SetParams;

/** Records that other versions have stored in Redis. */
@Tag("redis-7")
class RedisFormatTest extends RedisTestBase {
    static Stream<List<String>> records() {
        return Formats.records("redis-format-2.txt");
    }

    @ParameterizedTest
    @MethodSource("records")
    void recordIsRead(List<String> record) {
        byte[] value = HexFormat.of().parseHex(record.get(1));
        jedis.set(rawKey, value, SetParams.setParams().px(Formats.RETENTION.toMillis()));
        Formats.assertRead(record.get(0), storage, key);
    }

    @ParameterizedTest
    @MethodSource("records")
    void recordOfANewerFormatIsRefusedAndLeftAsItIs(List<String> record) {
        byte[] value = HexFormat.of().parseHex(record.get(1));
        value[0] = 3;
        jedis.set(rawKey, value);
        Formats.assertNewerFormatIsRefused(storage, key, "its format is 3, this version reads 2");
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
