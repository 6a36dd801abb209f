package io.idempotence.server.redis.internal.jedis;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.KilledProcess;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.providers.PooledConnectionProvider;

/** Callers whose process is paused (SIGSTOP) while they wait for each other. */
@Tag("jedis")
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("all") // waits as long as pauses take
class PausedCallersTest {
    private static final String WAITING = "waiting";
    private static final Duration LONGEST_WAIT = Duration.ofSeconds(3);
    private static final Duration LONGEST_REPLY = Duration.ofMillis(100);

    private final Map<String, CountDownLatch> held =
            Map.of("first", new CountDownLatch(1), "second", new CountDownLatch(1));

    /** The process that is paused. */
    static final class Callers {
        private Callers() {}

        public static void main(String[] args) throws Exception {
            ConnectionPoolConfig pool = new ConnectionPoolConfig();
            pool.setMaxTotal(1);
            PooledConnectionProvider provider = new PooledConnectionProvider(
                    new HostAndPort("127.0.0.1", Integer.parseInt(args[0])),
                    DefaultJedisClientConfig.builder()
                            .socketTimeoutMillis((int) QueuedCalls.LONG.toMillis())
                            .build(),
                    pool);
            CallPipeline pipeline = new CallPipeline(LONGEST_REPLY, null, new LargeRoundTrips(), () -> {});
            FlatCombiner combiner = new FlatCombiner(provider::getConnection, pipeline, 1, LONGEST_WAIT);
            FutureTask<List<Object>> first = started(combiner, "first");
            // The parent has seen the first one.
            assertThat(System.in.read()).isPositive();
            List<FutureTask<List<Object>>> others = Stream.of("second", "third")
                    .map(key -> started(combiner, key))
                    .toList();
            System.out.println(WAITING);
            System.out.println(QueuedCalls.told(first.get().get(0)));
            for (FutureTask<List<Object>> other : others) {
                System.out.println(QueuedCalls.told(other.get().get(0)));
            }
            provider.close();
        }

        private static FutureTask<List<Object>> started(FlatCombiner combiner, String key) {
            FutureTask<List<Object>> call = new FutureTask<>(() -> combiner.ask(List.of(QueuedCalls.find(key))));
            Thread thread = new Thread(call);
            thread.start();
            while (!key.equals("first") && thread.getState() != Thread.State.TIMED_WAITING) {
                Thread.onSpinWait();
            }
            return call;
        }
    }

    private void reply(ScriptedRedis.Command command, OutputStream out) throws IOException {
        CountDownLatch latch = held.get(command.key());
        if (latch != null) {
            try {
                latch.await();
            } catch (InterruptedException e) {
                throw new IOException(e);
            }
        }
        ScriptedRedis.write(out, ScriptedRedis.usual(command));
    }

    private static void signal(Process process, String name) throws Exception {
        assertThat(new ProcessBuilder("kill", "-" + name, Long.toString(process.pid()))
                        .start()
                        .waitFor())
                .isZero();
    }

    /** @param inFlight whose batch is in flight: the other callers wait in the queue, or in the batch */
    @ParameterizedTest
    @ValueSource(strings = {"first", "second"})
    void aPauseIsNoWait(String inFlight) throws Exception {
        ScriptedRedis redis = new ScriptedRedis(this::reply);
        Process process = KilledProcess.start(
                Callers.class, Integer.toString(redis.address().getPort()));
        try (BufferedReader out = process.inputReader(StandardCharsets.UTF_8)) {
            QueuedCalls.until(() -> !redis.received().isEmpty());
            process.getOutputStream().write('\n');
            process.getOutputStream().flush();
            assertThat(out.readLine()).isEqualTo(WAITING);
            if (inFlight.equals("second")) {
                held.get("first").countDown();
                QueuedCalls.until(() -> redis.received().size() == 2);
            }
            signal(process, "STOP");
            Thread.sleep(LONGEST_WAIT.plus(LONGEST_REPLY.multipliedBy(10)).toMillis());
            signal(process, "CONT");
            // Whoever counts the pause gives up by now.
            Thread.sleep(300);
            held.values().forEach(CountDownLatch::countDown);
            assertThat(out.lines()).containsExactly("first", "second", "third");
        } finally {
            held.values().forEach(CountDownLatch::countDown);
            process.destroyForcibly().waitFor();
            redis.close();
        }
    }
}
