package io.idempotence.benchmarks;

import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.IdempotenceStorage;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.function.Consumer;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.params.SetParams;

/** What both scripts of a first request take of Redis, beside a plain SET for each, by Redis' own statistics. */
@Command(name = "scripts", sortOptions = false, description = "Time within Redis of claim and completion, and of SET.")
final class ScriptsCommand implements Callable<Integer> {
    @Option(names = "--help", usageHelp = true, description = "Print this and exit.")
    boolean help;

    @Option(names = "--calls", defaultValue = "3000", description = "of each in a round (${DEFAULT-VALUE})")
    private int calls;

    @Option(names = "--rounds", defaultValue = "9", description = "rounds that count (${DEFAULT-VALUE})")
    private int rounds;

    @Mixin
    private RedisOption redisOption = new RedisOption();

    private final Map<String, List<Double>> micros = new LinkedHashMap<>();

    @Override
    public Integer call() throws Exception {
        try (Redis redis = redisOption.start();
                RedisClient raw = redis.client();
                IdempotenceStorage storage = RedisIdempotenceStorage.connect(redis.address())) {
            round(redis, raw, storage);
            micros.clear();
            for (int i = 0; i < rounds; i++) {
                round(redis, raw, storage);
            }
            Report report = new Report(System.out);
            report.line("%d rounds of %d calls each; medians of the rounds; Redis %s.", rounds, calls, redis.version());
            report.table("within the command", "µs");
            micros.forEach((what, each) -> report.row(
                    what,
                    Rounds.median(each.stream().mapToDouble(Double::doubleValue).toArray())));
        }
        return 0;
    }

    private void round(Redis redis, RedisClient raw, IdempotenceStorage storage) {
        List<String> ids = new ArrayList<>();
        for (int i = 0; i < calls; i++) {
            ids.add(Ids.next());
        }
        List<Claim> claims = new ArrayList<>();
        byte[] result = Requests.CREATED;
        byte[] claimed = new byte[62];
        byte[] completed = new byte[claimed.length - Long.BYTES + result.length];
        measure(
                redis,
                "claim of a free ID",
                "evalsha",
                ids,
                id -> claims.add(Requests.claim(storage, Requests.claimOf(id))));
        measure(redis, "completion", "evalsha", claims, claim -> Requests.complete(storage, claim, result));
        measure(
                redis,
                "SET NX PX, as long as a claim",
                "set",
                ids,
                id -> raw.set(key(id), claimed, retention().nx()));
        measure(
                redis,
                "SET PX, as long as a completed record",
                "set",
                ids,
                id -> raw.set(key(id), completed, retention()));
    }

    private <T> void measure(Redis redis, String what, String command, List<T> each, Consumer<T> call) {
        double perCall = redis.microsPerCall(command, () -> each.forEach(call));
        micros.computeIfAbsent(what, first -> new ArrayList<>()).add(perCall);
    }

    private static byte[] key(String id) {
        return ("plain:" + id).getBytes(StandardCharsets.US_ASCII);
    }

    private static SetParams retention() {
        return new SetParams().px(Requests.RETENTION.toMillis());
    }
}
