package io.idempotence.benchmarks;

import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.StorageKey;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.params.SetParams;

/** The measurement of whether a request costs the same however many records live. One server for each number of them, measured in turn. */
@Command(
        name = "scale",
        sortOptions = false,
        description = "Cost of claim + complete beside many live records in Redis.")
final class ScaleCommand implements Callable<Integer> {
    private static final int BATCH = 10_000;

    @Option(
            names = "--records",
            split = ",",
            defaultValue = "10000,100000,1000000,5000000",
            description = "live records (${DEFAULT-VALUE})")
    private List<Integer> sizes = List.of();

    @Option(names = "--threads", defaultValue = "4", description = "at once (${DEFAULT-VALUE})")
    private int threads;

    @Mixin
    private RoundsOption roundsOption = new RoundsOption();

    @Mixin
    private RedisOption redisOption = new RedisOption();

    @Mixin
    private ResultsOption results = new ResultsOption();

    @Override
    public Integer call() throws Exception {
        try (Resources resources = new Resources()) {
            List<Variant> variants = new ArrayList<>();
            List<String> memory = new ArrayList<>();
            for (int size : sizes) {
                Redis redis = resources.add(redisOption.start());
                IdempotenceStorage storage = resources.add(RedisIdempotenceStorage.connect(redis.address()));
                fill(redis, storage, size);
                memory.add(redis.info("memory", "used_memory_human"));
                variants.add(new Variant(Integer.toString(size), keeping(size, redis, storage)));
                System.err.printf("%d records%n", size);
            }
            report(roundsOption.run(variants), variants, memory);
        }
        return 0;
    }

    private void report(Rounds measured, List<Variant> variants, List<String> memory) throws IOException {
        Table table = new Table(
                "live records",
                "used_memory",
                "claim + complete/s",
                "÷ fewest's",
                "p50 µs",
                "p99 µs",
                "p50 ÷ fewest's");
        String fewest = variants.get(0).name();
        for (int i = 0; i < variants.size(); i++) {
            String name = variants.get(i).name();
            table.row(
                    "%,d".formatted(Integer.parseInt(name)),
                    memory.get(i),
                    measured.median(name, Sample::perSecond),
                    measured.medianOfRounds(Rounds.ratio(name, fewest, Sample::perSecond)),
                    measured.median(name, Sample::p50),
                    measured.percentile(name, 99),
                    measured.medianOfRounds(Rounds.ratio(name, fewest, Sample::p50)));
        }
        Plot plot = new Plot(
                "scale",
                "Claim and completion beside other records",
                "live records",
                sizes.stream().map("%,d"::formatted).toList(),
                "claim + complete/s ÷ fewest records'");
        plot.bars(
                "Redis",
                variants.stream()
                        .mapToDouble(variant ->
                                measured.medianOfRounds(Rounds.ratio(variant.name(), fewest, Sample::perSecond)))
                        .toArray());
        results.publish("scale", threads + " threads; " + roundsOption + ".", table, plot);
        String most = variants.get(variants.size() - 1).name();
        Targets targets = new Targets();
        targets.atLeast(
                "claim + complete/s with most records ÷ with fewest",
                0.95,
                measured,
                Rounds.ratio(most, fewest, Sample::perSecond));
        targets.publish("scale-targets", results);
    }

    /** Copies a real completed record under as many keys of the real form. */
    private static void fill(Redis redis, IdempotenceStorage storage, int count) {
        ClaimRequest first = Requests.claimOf(Ids.next());
        Requests.complete(storage, Requests.claim(storage, first), Requests.CREATED);
        try (Jedis jedis = redis.jedis()) {
            byte[] record = jedis.get(first.key().value().getBytes(StandardCharsets.US_ASCII));
            SetParams retention = new SetParams().px(Requests.RETENTION.toMillis());
            Random random = new Random(count);
            byte[] digest = new byte[32];
            for (int made = 1; made < count; made += BATCH) {
                try (Pipeline pipeline = jedis.pipelined()) {
                    for (int i = made; i < Math.min(made + BATCH, count); i++) {
                        random.nextBytes(digest);
                        String key = StorageKey.prefix(Requests.NAMESPACE)
                                + Base64.getUrlEncoder().withoutPadding().encodeToString(digest);
                        pipeline.set(key.getBytes(StandardCharsets.US_ASCII), record, retention);
                    }
                    pipeline.sync();
                }
            }
        }
    }

    /** Claims and completes; what it made is removed when the round is over, so that the next one finds as many records. */
    private Variant.Load keeping(int size, Redis redis, IdempotenceStorage storage) {
        byte[] result = Requests.CREATED;
        Queue<StorageKey> made = new ConcurrentLinkedQueue<>();
        Variant.Load load = new ThreadedLoad(threads, () -> () -> {
            Claim claim = Requests.claim(storage, Requests.claimOf(Ids.next()));
            Requests.complete(storage, claim, result);
            return made.add(claim.key());
        });
        return duration -> {
            Sample sample = load.run(duration);
            made.forEach(storage::delete);
            made.clear();
            requireSize(redis, size);
            return sample;
        };
    }

    private static void requireSize(Redis redis, int size) {
        try (Jedis jedis = redis.jedis()) {
            if (jedis.dbSize() != size) {
                throw new IllegalStateException("%d records live, not %d".formatted(jedis.dbSize(), size));
            }
        }
    }
}
