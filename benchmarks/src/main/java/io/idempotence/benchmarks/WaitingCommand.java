package io.idempotence.benchmarks;

import io.idempotence.IdempotenceId;
import io.idempotence.server.Decision;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.IdempotentCall;
import io.idempotence.server.Verdict;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.HdrHistogram.Histogram;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPubSub;

/**
 * Whether duplicates that wait for an execution in another process should be told by a message (publish and subscribe) instead of
 * looking: how late they get their response, and what a message costs every first request, most of which nobody waits for.
 */
@Command(name = "waiting", sortOptions = false, description = "Waiting for another process by looks, and by messages.")
final class WaitingCommand implements Callable<Integer> {
    private static final String CHANNEL = "idem-ends";
    private static final String COMPLETE =
            "if redis.call('GET', KEYS[1]) then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end return 1";
    private static final String COMPLETE_AND_TELL =
            COMPLETE.replace(" end return", " end redis.call('PUBLISH', '" + CHANNEL + "', KEYS[1]) return");
    private static final Duration PATIENCE = Duration.ofSeconds(30);

    @Option(names = "--help", usageHelp = true, description = "Print this and exit.")
    boolean help;

    @Option(
            names = "--handler-millis",
            split = ",",
            defaultValue = "50,200,1000,3000",
            description = "how long the first attempt runs (${DEFAULT-VALUE})")
    private List<Integer> handlerMillis = List.of();

    @Option(names = "--times", defaultValue = "15", description = "of each (${DEFAULT-VALUE})")
    private int times;

    @Option(names = "--completions", defaultValue = "20000", description = "with each script (${DEFAULT-VALUE})")
    private int completions;

    @Mixin
    private RedisOption redisOption = new RedisOption();

    private final Map<String, CompletableFuture<Void>> told = new ConcurrentHashMap<>();

    @Override
    public Integer call() throws Exception {
        try (Resources resources = new Resources()) {
            Redis redis = resources.add(redisOption.start());
            Idempotence runs = resources.add(Idempotence.over(RedisIdempotenceStorage.connect(redis.address())));
            Idempotence waits = resources.add(Idempotence.over(RedisIdempotenceStorage.connect(redis.address())));
            Jedis sender = resources.add(redis.jedis());
            Jedis receiver = resources.add(redis.jedis());
            resources.add(listen(receiver));

            Report report = new Report(System.out);
            report.line("%d times each; Redis %s.", times, redis.version());
            report.table(
                    "first attempt runs, ms",
                    "woken after its end by looks, ms: p50",
                    "longest",
                    "by a message, ms: p50",
                    "longest");
            for (int millis : handlerMillis) {
                // Varied a little, so that the end does not always fall on the same place between two looks.
                Histogram byLooks = new Histogram(3);
                Histogram byMessage = new Histogram(3);
                for (int i = 0; i < times; i++) {
                    int handler = millis + millis * i / times / 2;
                    byLooks.recordValue(lateByLooks(runs, waits, handler));
                    byMessage.recordValue(lateByMessage(runs, waits, sender, handler));
                }
                report.row(
                        millis + " to " + millis * 3 / 2,
                        byLooks.getValueAtPercentile(50) / 1e6,
                        byLooks.getMaxValue() / 1e6,
                        byMessage.getValueAtPercentile(50) / 1e6,
                        byMessage.getMaxValue() / 1e6);
            }
            report.table("a completion nobody waits for", "µs in Redis");
            completions(redis, sender, COMPLETE);
            completions(redis, sender, COMPLETE_AND_TELL);
            report.row("script", completions(redis, sender, COMPLETE));
            report.row("script that tells, one listener", completions(redis, sender, COMPLETE_AND_TELL));
        }
        return 0;
    }

    private static long lateByLooks(Idempotence runs, Idempotence waits, int millis) throws Exception {
        IdempotentCall call = newCall();
        Decision.Run first = run(runs, call);
        Decision inProgress = waits.engine().claim(call, IdempotencePolicy.defaults());
        CompletableFuture<Long> responded = waits.engine()
                .await(inProgress, call, IdempotencePolicy.defaults(), PATIENCE)
                .thenApply(decision -> System.nanoTime());
        TimeUnit.MILLISECONDS.sleep(millis);
        first.execution().finish(Verdict.KEEP, Requests.CREATED);
        long end = System.nanoTime();
        return Math.max(0, responded.get() - end);
    }

    private long lateByMessage(Idempotence runs, Idempotence waits, Jedis sender, int millis) throws Exception {
        IdempotentCall call = newCall();
        Decision.Run first = run(runs, call);
        CompletableFuture<Void> message = new CompletableFuture<>();
        told.put(call.id().value(), message);
        CompletableFuture<Long> responded = message.thenApply(ended -> {
            waits.engine().claim(call, IdempotencePolicy.defaults());
            return System.nanoTime();
        });
        TimeUnit.MILLISECONDS.sleep(millis);
        first.execution().finish(Verdict.KEEP, Requests.CREATED);
        long end = System.nanoTime();
        sender.publish(CHANNEL, call.id().value());
        return Math.max(0, responded.get() - end);
    }

    private static IdempotentCall newCall() {
        return IdempotentCall.of(new IdempotenceId(Ids.next()));
    }

    private static Decision.Run run(Idempotence idempotence, IdempotentCall call) {
        return (Decision.Run) idempotence.engine().claim(call, IdempotencePolicy.defaults());
    }

    private AutoCloseable listen(Jedis receiver) throws Exception {
        CompletableFuture<Void> subscribed = new CompletableFuture<>();
        JedisPubSub messages = new JedisPubSub() {
            @Override
            public void onSubscribe(String channel, int channels) {
                subscribed.complete(null);
            }

            @Override
            public void onMessage(String channel, String id) {
                CompletableFuture<Void> waiter = told.remove(id);
                if (waiter != null) {
                    waiter.complete(null);
                }
            }
        };
        Thread listener = new Thread(() -> receiver.subscribe(messages, CHANNEL), "bench-listener");
        listener.setDaemon(true);
        listener.start();
        subscribed.get();
        return () -> {
            messages.unsubscribe();
            listener.join();
        };
    }

    private double completions(Redis redis, Jedis jedis, String script) {
        String sha = jedis.scriptLoad(script);
        String value = "x".repeat(127);
        return redis.microsPerCall("evalsha", () -> {
            for (int i = 0; i < completions; i++) {
                String key = "idem:payments:" + Ids.next();
                jedis.set(key, value);
                jedis.evalsha(sha, List.of(key), List.of(value, "60000"));
                jedis.del(key);
            }
        });
    }
}
