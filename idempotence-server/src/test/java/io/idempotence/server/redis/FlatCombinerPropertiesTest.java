package io.idempotence.server.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.io.IOException;
import java.io.OutputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.ShrinkingMode;
import net.jqwik.api.Tag;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.providers.PooledConnectionProvider;

/**
 * Random callers, interrupts and faults over real sockets. What each caller gets is compared with what the server replied to that caller's
 * key, which occurs once.
 */
@Tag("jedis")
class FlatCombinerPropertiesTest {
    private static final LuaScript SCRIPT = LuaScript.load("find.lua", byte[].class);
    private static final int REPLY_MILLIS = 50;
    private static final int CALLERS = 12;
    private static final int CALLS = 10;

    /** What the server does with a call. */
    private enum Fate {
        REPLY,
        ERROR,
        NO_SCRIPT,
        READ_ONLY,
        /** No reply, while the next calls have theirs. */
        SKIPPED,
        WRONG_TYPE,
        GARBAGE,
        CUT_OFF,
        CLOSED,
        SILENCE
    }

    private enum Outcome {
        REPLIED,
        REFUSED,
        NOT_SENT,
        IN_DOUBT
    }

    /** One run. */
    private static final class Chaos {
        private final long seed;
        private final Map<String, Integer> arrived = new ConcurrentHashMap<>();
        private final Map<String, Outcome> outcomes = new ConcurrentHashMap<>();
        private volatile boolean isOver;

        Chaos(long seed) {
            this.seed = seed;
        }

        Fate fateOf(String key) {
            int dice = new Random(seed ^ key.hashCode()).nextInt(400);
            Fate[] faults = Fate.values();
            return isOver || dice >= 2 * faults.length ? Fate.REPLY : faults[dice / 2];
        }

        void reply(ScriptedRedis.Command command, OutputStream out) throws IOException {
            String key = command.key();
            String whole = ScriptedRedis.usual(command);
            if (!command.isScript()) {
                ScriptedRedis.write(out, whole);
                return;
            }
            arrived.merge(key, 1, Integer::sum);
            switch (fateOf(key)) {
                case REPLY -> ScriptedRedis.write(out, whole);
                case ERROR -> ScriptedRedis.write(out, "-OOM " + key + "\r\n");
                case NO_SCRIPT -> ScriptedRedis.write(out, "-NOSCRIPT " + key + "\r\n");
                case READ_ONLY -> ScriptedRedis.write(out, "-READONLY " + key + "\r\n");
                case SKIPPED -> {}
                case WRONG_TYPE -> ScriptedRedis.write(out, ":1\r\n");
                case GARBAGE -> ScriptedRedis.write(out, "$x\r\n");
                case CUT_OFF -> {
                    ScriptedRedis.write(out, whole.substring(0, whole.length() / 2));
                    throw new IOException("cut off");
                }
                case CLOSED -> throw new IOException("closed");
                case SILENCE -> {
                    awaitSilence();
                    throw new IOException("silent for long enough");
                }
            }
        }

        private static void awaitSilence() {
            try {
                TimeUnit.MILLISECONDS.sleep(2 * REPLY_MILLIS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }

        Outcome call(FlatCombiner combiner, String key) {
            Object reply;
            try {
                reply = combiner.ask(List.of(RedisCall.evalsha(SCRIPT, RedisCall.bytes(key))))
                        .get(0);
            } catch (NothingWrittenException e) {
                return Outcome.NOT_SENT;
            } catch (RuntimeException e) {
                return Outcome.IN_DOUBT;
            }
            if (reply instanceof JedisDataException refused) {
                assertThat(refused).as("the error of %s", key).hasMessageEndingWith(" " + key);
                return Outcome.REFUSED;
            }
            assertThat(RedisCall.text(((List<?>) reply).get(0)))
                    .as("the reply to %s", key)
                    .isEqualTo(key);
            return Outcome.REPLIED;
        }
    }

    @Property(tries = 15, shrinking = ShrinkingMode.OFF)
    void everyCallerGetsItsOwnReplyOrCorrectlyLearnsWhetherItWasSent(@ForAll long seed) throws Exception {
        Random random = new Random(seed);
        int batches = 1 + random.nextInt(3);
        Duration maxWait = Duration.ofMillis(1 + random.nextInt(40));
        Chaos chaos = new Chaos(seed);
        ConnectionPoolConfig pool = new ConnectionPoolConfig();
        pool.setMaxTotal(batches);
        ExecutorService threads = Executors.newFixedThreadPool(CALLERS);
        ConcurrentLinkedQueue<Thread> callers = new ConcurrentLinkedQueue<>();
        try (ScriptedRedis server = new ScriptedRedis(chaos::reply)) {
            try (PooledConnectionProvider provider = new PooledConnectionProvider(
                    server.address(),
                    DefaultJedisClientConfig.builder()
                            .socketTimeoutMillis(REPLY_MILLIS)
                            .build(),
                    pool)) {
                CallPipeline pipeline = new CallPipeline(Duration.ofMillis(REPLY_MILLIS), null, () -> {});
                FlatCombiner combiner = new FlatCombiner(provider::getConnection, pipeline, batches, maxWait);
                List<Future<?>> ends = new ArrayList<>();
                for (int i = 0; i < CALLERS; i++) {
                    String name = "caller-" + i;
                    ends.add(threads.submit(() -> {
                        callers.add(Thread.currentThread());
                        for (int call = 0; call < CALLS; call++) {
                            String key = name + "-" + call;
                            chaos.outcomes.put(key, chaos.call(combiner, key));
                            // It may have been interrupted.
                            Thread.interrupted();
                        }
                    }));
                }
                while (ends.stream().anyMatch(end -> !end.isDone())) {
                    if (random.nextInt(4) == 0) {
                        callers.stream()
                                .skip(random.nextInt(CALLERS))
                                .findFirst()
                                .ifPresent(Thread::interrupt);
                    }
                    TimeUnit.MILLISECONDS.sleep(1);
                }
                for (Future<?> end : ends) {
                    end.get();
                }
                chaos.isOver = true;
                AtomicInteger more = new AtomicInteger();
                // The first ones may meet connections that the server has closed.
                await("a call after all faults")
                        .until(() -> chaos.call(combiner, "more-" + more.incrementAndGet()) == Outcome.REPLIED);
            }
        } finally {
            threads.shutdownNow();
        }
        assertThat(chaos.outcomes).hasSize(CALLERS * CALLS);
        chaos.isOver = false;
        chaos.outcomes.forEach((key, outcome) -> {
            int arrived = chaos.arrived.getOrDefault(key, 0);
            assertThat(arrived)
                    .as("how often %s arrived, whose outcome is %s", key, outcome)
                    .isBetween(outcome == Outcome.REPLIED || outcome == Outcome.REFUSED ? 1 : 0, 1);
            switch (outcome) {
                case REPLIED -> assertThat(chaos.fateOf(key)).isEqualTo(Fate.REPLY);
                case REFUSED -> assertThat(chaos.fateOf(key)).isIn(Fate.ERROR, Fate.NO_SCRIPT, Fate.READ_ONLY);
                case NOT_SENT -> assertThat(arrived).isZero();
                case IN_DOUBT -> {}
            }
        });
    }
}
