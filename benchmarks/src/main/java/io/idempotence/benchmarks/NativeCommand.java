package io.idempotence.benchmarks;

import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimRequest;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.IdempotenceStorage;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.ToDoubleFunction;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.params.SetParams;

/**
 * Whether a claim by Redis 7's own {@code SET … NX GET PX} would be worth a second path beside the script.
 *
 * <p>The native command writes the very bytes of a claim of ours and brings the old record back. What it cannot do is not counted
 * against it: it does not say how long that has left to live, so that a live claim could not be told from an abandoned one
 * without asking again.
 */
@Command(name = "native", sortOptions = false, description = "The claim by our script beside Redis 7's SET NX GET PX.")
final class NativeCommand implements Callable<Integer> {
    private static final String SCRIPT = "our script";
    private static final String NATIVE = "SET NX GET PX";
    private static final String PLAIN = "SET NX PX (no GET)";
    private static final String SCRIPT_REPLAY = "replay by our script";
    private static final String NATIVE_REPLAY = "replay by SET NX GET PX";

    @Option(names = "--help", usageHelp = true, description = "Print this and exit.")
    boolean help;

    @Option(names = "--threads", split = ",", defaultValue = "1,16", description = "at once (${DEFAULT-VALUE})")
    private List<Integer> threads = List.of();

    @Mixin
    private RoundsOption roundsOption = new RoundsOption();

    @Mixin
    private RedisOption redisOption = new RedisOption();

    @Override
    public Integer call() throws Exception {
        try (Redis redis = redisOption.startVersion7();
                RedisClient raw = redis.client();
                IdempotenceStorage storage = RedisIdempotenceStorage.connect(redis.address())) {
            boolean hasNxGet = Integer.parseInt(redis.version().split("\\.", 2)[0]) >= 7;
            Report report = new Report(System.out);
            if (!hasNxGet) {
                report.line(
                        "Redis %s does not know NX together with GET; give one of 7.0 or later with --redis-server.",
                        redis.version());
            }
            ClaimRequest known = Requests.claimOf(Ids.next());
            Claim claim = Requests.claim(storage, known);
            byte[] claimed = raw.get(key(known));
            Requests.complete(storage, claim, Requests.CREATED);

            for (int count : threads) {
                List<Variant> variants = new ArrayList<>();
                variants.add(
                        variant(redis, SCRIPT, count, () -> Requests.claim(storage, Requests.claimOf(Ids.next()))));
                variants.add(variant(redis, PLAIN, count, () -> {
                    ClaimRequest request = Requests.claimOf(Ids.next());
                    if (raw.set(key(request), claimed, retention().nx()) == null) {
                        throw new IllegalStateException("a new ID was not free");
                    }
                }));
                if (hasNxGet) {
                    variants.add(variant(redis, NATIVE, count, () -> {
                        if (nativeClaim(raw, Requests.claimOf(Ids.next()), claimed) != null) {
                            throw new IllegalStateException("a new ID was not free");
                        }
                    }));
                    variants.add(variant(redis, SCRIPT_REPLAY, count, () -> {
                        if (!(storage.claim(known) instanceof ClaimResult.Completed)) {
                            throw new IllegalStateException("not a replay");
                        }
                    }));
                    variants.add(variant(redis, NATIVE_REPLAY, count, () -> {
                        if (nativeClaim(raw, known, claimed) == null) {
                            throw new IllegalStateException("not a replay");
                        }
                    }));
                }
                report(report, roundsOption.run(variants), variants, count, redis.version());
            }
        }
        return 0;
    }

    private void report(Report report, Rounds measured, List<Variant> variants, int count, String version) {
        report.line("%n%d threads, %s; Redis %s.", count, roundsOption, version);
        report.table("claim", "claims/s", "p50 µs", "p99 µs", "claims/s ÷ script's", "CPU µs, Redis");
        for (Variant variant : variants) {
            String name = variant.name();
            String base = name.equals(NATIVE_REPLAY) || name.equals(SCRIPT_REPLAY) ? SCRIPT_REPLAY : SCRIPT;
            ToDoubleFunction<Rounds.Round> ratio = round -> round.ratio(name, base, Sample::perSecond);
            report.row(
                    name,
                    measured.median(name, Sample::perSecond),
                    measured.median(name, Sample::p50),
                    measured.median(name, sample -> sample.percentile(99)),
                    measured.medianOfRounds(ratio),
                    measured.median(name, Sample::redisCpu));
        }
    }

    private static Variant variant(Redis redis, String name, int threads, ThreadedLoad.Caller call) {
        return new Variant(name, redis.withCpu(new ThreadedLoad(threads, () -> call)));
    }

    private static byte @Nullable [] nativeClaim(RedisClient raw, ClaimRequest request, byte[] claimed) {
        return raw.setGet(key(request), claimed, retention().nx());
    }

    private static SetParams retention() {
        return new SetParams().px(Requests.RETENTION.toMillis());
    }

    private static byte[] key(ClaimRequest request) {
        return request.key().value().getBytes(StandardCharsets.US_ASCII);
    }
}
