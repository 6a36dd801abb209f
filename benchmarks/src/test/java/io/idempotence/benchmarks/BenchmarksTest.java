package io.idempotence.benchmarks;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.Idempotence;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.IdempotenceStorage;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.RedisClient;

/** Tests that the benchmarks still run; what they measure here means nothing. */
class BenchmarksTest {
    private static final String BRIEF = "--rounds 1 --warm-ups 1 --seconds 0.1";

    @TempDir
    Path out;

    @Test
    void everyVariantButTheDatabaseIsMeasuredAndDrawn() {
        assertThat(run("server --variants REDIS,REDIS_AFTER,MEMORY,GET,REPLAY --connections 1,2 --networks 0,200 "
                        + BRIEF))
                .isZero();
        assertThat(out).isDirectoryContaining("glob:**/server.md").isDirectoryContaining("glob:**/replay.svg");
        assertThat(out.resolve("network.svg")).content().contains("requests/s ÷ floor", "ours on Redis, 200 µs");
    }

    @Test
    void recordsAreMeasured() {
        assertThat(run("record --records 10")).isZero();
    }

    @Test
    void everyRoundFindsAsManyLiveRecordsAsTheFirst() {
        assertThat(run("scale --records 10,20 --threads 2 " + BRIEF)).isZero();
    }

    @Test
    void clientsAreMeasured() {
        assertThat(run("client --threads 2 " + BRIEF)).isZero();
    }

    @Test
    void stepsAreMeasured() {
        assertThat(run("jmh --rounds 1 --warm-up-seconds 0 --seconds 1")).isZero();
    }

    @Test
    void resultsReplaceTheFormerOnesInTheDocumentation() throws Exception {
        Path page = Files.writeString(out.resolve("benchmarks.md"), """
                # Benchmarks
                <!-- record -->
                old
                <!-- end of record -->
                <!-- record-targets -->
                <!-- end of record-targets -->
                end
                """);

        assertThat(run("record --records 10 --docs " + out)).isZero();

        assertThat(page)
                .content()
                .startsWith("# Benchmarks\n<!-- record -->\n")
                .doesNotContain("old")
                .contains("completed record, `MEMORY USAGE`", "(benchmarks/record.svg)")
                .contains("load average before the run: ")
                .endsWith("<!-- end of record-targets -->\nend\n");
        assertThat(out.resolve("benchmarks/record.svg")).isNotEmptyFile();
    }

    @Test
    void slowNetworkDelaysRequestsAndLosesNothing() throws Exception {
        Duration delay = Duration.ofMillis(20);
        try (Redis redis = Redis.start(Redis.VERSION_6);
                SlowNetwork network = SlowNetwork.before(redis.port(), delay);
                Jedis jedis = new Jedis("127.0.0.1", network.port())) {
            byte[] large = new byte[300_000];
            Arrays.fill(large, (byte) 'x');
            jedis.set("large".getBytes(US_ASCII), large);
            long before = System.nanoTime();
            assertThat(jedis.get("large".getBytes(US_ASCII))).isEqualTo(large);
            assertThat(System.nanoTime() - before).isGreaterThan(delay.toNanos() / 2);
        }
    }

    @Test
    void theFloorWritesValuesAsLongAsOurs() throws Exception {
        try (Redis redis = Redis.start(Redis.VERSION_6);
                RedisClient client = Redis.client(new HostAndPort("127.0.0.1", redis.port()));
                IdempotenceStorage storage = RedisIdempotenceStorage.connect(redis.address());
                Idempotence idempotence = Idempotence.over(storage);
                PaymentServer server = PaymentServer.start(
                        Map.of("ours", context -> IdempotenceFilter.install(context, idempotence)));
                HttpConnection connection = new HttpConnection(server.port(), "/ours/payments", true)) {
            Claim claim = Requests.claim(storage, Requests.claimOf(Ids.next()));
            assertThat(client.strlen(claim.key().value())).isEqualTo(RawFilter.CLAIMED.length);
            client.flushAll();
            assertThat(connection.call()).isTrue();
            assertThat(client.keys("*"))
                    .singleElement()
                    .satisfies(key -> assertThat(client.strlen(key)).isEqualTo(RawFilter.COMPLETED.length));
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

        Rounds measured =
                Rounds.run(variants, 1, 3, Duration.ofMillis(1), new Countdown(System.err, 8, Duration.ofMillis(8)));

        assertThat(order).hasToString("fssffssf");
        assertThat(measured.medianOfRounds(Rounds.ratio("fast", "slow", Sample::perSecond)))
                .isEqualTo(2);
        assertThat(measured.median("slow", Sample::perSecond)).isEqualTo(500);
    }

    private static Sample sample(StringBuilder order, long nanos) {
        assertThat(order).isNotEmpty();
        Histogram latencies = new Histogram(3);
        latencies.recordValue(1);
        return new Sample(nanos, latencies, 0, Usage.NONE);
    }

    private int run(String arguments) {
        return new CommandLine(new Benchmarks()).execute((arguments + " --out " + out).split(" "));
    }
}
