package io.idempotence.benchmarks;

import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.IntStream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import redis.clients.jedis.Jedis;

/** The measurement of how much of a Redis server's memory a record takes. */
@Command(name = "record", sortOptions = false, description = "Memory of one record, and of a million, in Redis.")
final class RecordCommand implements Callable<Integer> {
    @Option(names = "--records", defaultValue = "200000", description = "made to measure many (${DEFAULT-VALUE})")
    private int records;

    @Mixin
    private RedisOption redisOption = new RedisOption();

    @Mixin
    private ResultsOption results = new ResultsOption();

    @Override
    public Integer call() throws Exception {
        byte[] result = Requests.CREATED;
        try (Redis redis = redisOption.start();
                Jedis jedis = redis.jedis();
                IdempotenceStorage storage = RedisIdempotenceStorage.connect(redis.address())) {
            ClaimRequest request = Requests.claimOf(Ids.next());
            String key = request.key().value();
            Claim claim = Requests.claim(storage, request);
            long claimed = jedis.memoryUsage(key);
            Requests.complete(storage, claim, result);
            long completed = jedis.memoryUsage(key);
            long value = jedis.strlen(key);
            storage.delete(request.key());

            long empty = usedMemory(redis);
            // Many at once only to be done sooner.
            IntStream.range(0, records)
                    .parallel()
                    .forEach(i ->
                            Requests.complete(storage, Requests.claim(storage, Requests.claimOf(Ids.next())), result));
            double each = (usedMemory(redis) - empty) / (double) records;

            Table table = new Table("<", "bytes")
                    .row("claimed record, `MEMORY USAGE`", claimed)
                    .row("completed record, `MEMORY USAGE`", completed)
                    .row("completed record, `used_memory` over %,d of them".formatted(records), each);
            Plot plot = new Plot(
                            "record",
                            "Memory of a record",
                            "record",
                            List.of("claimed", "completed", "of many"),
                            "bytes")
                    .bars("Redis", claimed, completed, each);
            results.publish(
                    "record",
                    "Redis %s; key of %d bytes, value of %d bytes, of which the result has %d."
                            .formatted(redis.version(), key.length(), value, result.length),
                    table,
                    plot);
            Targets targets = new Targets();
            targets.add("bytes of a completed record: at most 264", completed, "", completed <= 264);
            targets.publish("record-targets", results);
        }
        return 0;
    }

    private static long usedMemory(Redis redis) {
        return Long.parseLong(redis.info("memory", "used_memory"));
    }
}
