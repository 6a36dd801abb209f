package io.idempotence.it.pair;

import static io.idempotence.it.wire.FaultyProxy.Fault.NONE;
import static io.idempotence.it.wire.FaultyProxy.Fault.RESET_AFTER_FORWARDING;
import static io.idempotence.it.wire.FaultyProxy.Fault.RESPONSE_LOST;
import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.redis.EmbeddedRedis;
import io.idempotence.server.redis.EmbeddedRedisCluster;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Both halves on a Redis Cluster of three primaries. */
class PairClusterIT extends PairTestBase {
    private static final int ORDERS = 20;

    private static EmbeddedRedisCluster cluster;

    @BeforeAll
    static void startCluster() {
        cluster = EmbeddedRedisCluster.start();
    }

    @AfterAll
    static void stopCluster() {
        cluster.close();
    }

    @Test
    void everyOrderIsPaidOnceAndGetsItsResponse() throws Exception {
        startProvider(() -> EmbeddedRedis.connect(cluster.addresses()));
        Payments payments = through(
                (request, n) -> n > 1 ? NONE : request.text().endsWith("7") ? RESET_AFTER_FORWARDING : RESPONSE_LOST,
                fast(),
                okHttp(),
                20_000,
                instances());
        Map<String, String> responses = concurrently(ORDERS, i -> payments.pay("order-" + i));
        responses.forEach((number, response) -> assertThat(response).endsWith(" for order-" + number));
        assertThat(ledger.payments())
                .isEqualTo(Ledger.onceEach(
                        IntStream.range(0, ORDERS).mapToObj(i -> "order-" + i).collect(Collectors.toSet())));
    }
}
