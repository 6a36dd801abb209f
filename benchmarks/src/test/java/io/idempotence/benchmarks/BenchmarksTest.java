package io.idempotence.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.Idempotence;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.IdempotenceStorage;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;
import redis.clients.jedis.RedisClient;

/** That the benchmarks still run; what they measure here means nothing. */
class BenchmarksTest {
    @Test
    void loadHarnessRunsEveryVariantButTheDatabase() {
        assertThat(run("server --variants bare,floor,redis,memory --connections 2 --rounds 1 --warm-ups 0 --seconds 1"))
                .isZero();
    }

    @Test
    void recordsAreMeasured() {
        assertThat(run("record --records 10")).isZero();
    }

    @Test
    void everyRoundFindsAsManyLiveRecordsAsTheFirst() {
        assertThat(run("scale --records 10,20 --threads 2 --rounds 1 --warm-ups 1 --seconds 1"))
                .isZero();
    }

    @Test
    void nativeCommandIsMeasuredOnTheRedisThatKnowsIt() {
        assertThat(run("native --threads 1 --rounds 1 --warm-ups 0 --seconds 1"))
                .isZero();
    }

    @Test
    void scriptsAreMeasured() {
        assertThat(run("scripts --rounds 1 --calls 10")).isZero();
    }

    @Test
    void waitingIsMeasured() {
        assertThat(run("waiting --handler-millis 30 --times 1 --completions 10"))
                .isZero();
    }

    @Test
    void clientsAreMeasured() {
        assertThat(run("client --threads 2 --rounds 1 --warm-ups 0 --seconds 1"))
                .isZero();
    }

    @Test
    void theFloorWritesValuesAsLongAsOurs() throws Exception {
        try (Redis redis = Redis.start(Redis.VERSION_6);
                RedisClient client = redis.client();
                IdempotenceStorage storage = RedisIdempotenceStorage.connect(redis.address());
                Idempotence idempotence = Idempotence.over(storage);
                PaymentServer server = PaymentServer.start(
                        Map.of("ours", context -> IdempotenceFilter.install(context, idempotence)));
                HttpConnection connection = new HttpConnection(server.port(), "/ours/payments")) {
            Claim claim = Requests.claim(storage, Requests.claimOf(Ids.next()));
            assertThat(client.strlen(claim.key().value())).isEqualTo(FloorFilter.CLAIMED.length);
            client.flushAll();
            connection.call();
            assertThat(client.keys("*"))
                    .singleElement()
                    .satisfies(key -> assertThat(client.strlen(key)).isEqualTo(FloorFilter.COMPLETED.length));
        }
    }

    @Test
    void ratiosAreTakenWithinARoundAndEveryRoundBeginsWithAnotherVariant() throws Exception {
        StringBuilder order = new StringBuilder();
        // Twice as fast in every round, while both get slower from round to round.
        long[] nanos = {1_000, 2_000};
        List<Variant> variants = List.of(
                new Variant("fast", duration -> sample(order.append('f'), nanos[0] *= 10)),
                new Variant("slow", duration -> sample(order.append('s'), nanos[1] *= 10)));

        Rounds measured = Rounds.run(variants, 1, 3, Duration.ofMillis(1), System.err);

        assertThat(order).hasToString("fssffssf");
        assertThat(measured.medianOfRounds(round -> round.ratio("fast", "slow", Sample::perSecond)))
                .isEqualTo(2);
        assertThat(measured.median("slow", Sample::perSecond)).isEqualTo(500);
    }

    private static Sample sample(StringBuilder order, long nanos) {
        assertThat(order).isNotEmpty();
        Histogram latencies = new Histogram(3);
        latencies.recordValue(1);
        return new Sample(nanos, latencies, 0, 0);
    }

    private static int run(String arguments) {
        return new CommandLine(new Benchmarks()).execute(arguments.split(" "));
    }
}
