package io.idempotence.server.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import java.io.IOException;
import java.io.OutputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.providers.PooledConnectionProvider;

/** What becomes of callers whose calls are sent together. */
@Tag("jedis")
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class FlatCombinerTest {
    private static final LuaScript SCRIPT = LuaScript.load("find.lua", byte[].class);
    private static final Duration LONG = Duration.ofSeconds(20);

    private final Set<String> arrived = ConcurrentHashMap.newKeySet();
    private final CountDownLatch firstMayEnd = new CountDownLatch(1);
    private final CountDownLatch secondMayEnd = new CountDownLatch(1);
    private final AtomicBoolean breaks = new AtomicBoolean();
    private final ScriptedRedis server = new ScriptedRedis(this::reply);
    private PooledConnectionProvider provider;
    private PooledRedis redis;

    private void connect(int connections) {
        ConnectionPoolConfig pool = new ConnectionPoolConfig();
        pool.setMaxTotal(connections);
        provider = new PooledConnectionProvider(
                server.address(),
                DefaultJedisClientConfig.builder()
                        .socketTimeoutMillis((int) LONG.toMillis())
                        .build(),
                pool);
        RedisTopology.Limits limits = new RedisTopology.Limits(connections, LONG, LONG);
        redis = new PooledRedis("Redis", new RedisTopology.Primary(provider, limits, null, provider::close), null);
    }

    @AfterEach
    void close() throws Exception {
        firstMayEnd.countDown();
        secondMayEnd.countDown();
        redis.close();
        server.close();
    }

    private void reply(String key, OutputStream out) throws IOException {
        arrived.add(key);
        try {
            if (key.equals("first")) {
                firstMayEnd.await();
            }
            if (key.equals("second")) {
                secondMayEnd.await();
            }
        } catch (InterruptedException e) {
            throw new IOException(e);
        }
        if (key.equals("second") && breaks.getAndSet(false)) {
            throw new IOException("the connection breaks");
        }
        ScriptedRedis.write(out, "*2\r\n$" + key.length() + "\r\n" + key + "\r\n:-2\r\n");
    }

    private record Call(Thread thread, FutureTask<String> result) {}

    private Call call(String key) {
        FutureTask<String> result = new FutureTask<>(() -> {
            Object reply = redis.run(SCRIPT, RedisCall.bytes(key));
            String flag = Thread.currentThread().isInterrupted() ? " and is interrupted" : "";
            return RedisCall.text(((List<?>) reply).get(0)) + flag;
        });
        Thread thread = new Thread(result, key);
        thread.start();
        return new Call(thread, result);
    }

    /** A call that is in the queue when this returns. */
    private Call queued(String key) {
        Call call = call(key);
        await().until(() -> call.thread().getState() == Thread.State.TIMED_WAITING);
        return call;
    }

    private Call firstOnTheWire() {
        Call first = call("first");
        await().until(() -> arrived.contains("first"));
        return first;
    }

    @Test
    void aBatchThatHangsHoldsUpNobodyElse() throws Exception {
        connect(4);
        Call first = firstOnTheWire();
        Call second = call("second");
        await().until(() -> arrived.contains("second"));
        assertThat(call("third").result().get()).isEqualTo("third");
        assertThat(first.result()).isNotDone();
        assertThat(second.result()).isNotDone();
    }

    @ParameterizedTest
    @CsvSource({"63, 0, 1", "100, 0, 2", "63, 1024, 3", "1, 100000, 1"})
    void aBatchIsBoundedByItsCallsAndTheirBytes(int callers, int bytes, int batches) throws Exception {
        connect(1);
        AtomicInteger lent = new AtomicInteger();
        FlatCombiner combiner = new FlatCombiner(
                () -> {
                    lent.incrementAndGet();
                    return provider.getConnection();
                },
                new CallPipeline(LONG, null, () -> {}),
                1,
                LONG);
        Thread first = new Thread(() -> combiner.ask(List.of(RedisCall.evalsha(SCRIPT, RedisCall.bytes("first")))));
        first.start();
        await().until(() -> arrived.contains("first"));
        List<Thread> others = new ArrayList<>();
        for (int i = 0; i < callers; i++) {
            RedisCall call = RedisCall.evalsha(SCRIPT, RedisCall.bytes("key-" + i), new byte[bytes]);
            others.add(new Thread(() -> combiner.ask(List.of(call))));
        }
        others.forEach(Thread::start);
        await().until(() -> others.stream().allMatch(thread -> thread.getState() == Thread.State.TIMED_WAITING));
        firstMayEnd.countDown();
        for (Thread each : others) {
            each.join();
        }
        assertThat(arrived).hasSize(1 + callers);
        assertThat(lent).hasValue(1 + batches);
    }

    @Test
    void anInterruptedCallerStillGetsTheReplyToACallThatWasSentWithOthers() throws Exception {
        connect(1);
        firstOnTheWire();
        Call second = queued("second");
        Call third = queued("third");
        firstMayEnd.countDown();
        await().until(() -> arrived.contains("second"));
        third.thread().interrupt();
        secondMayEnd.countDown();
        assertThat(second.result().get()).isEqualTo("second");
        assertThat(third.result().get()).isEqualTo("third and is interrupted");
    }

    /** An interrupt closes the connection of a virtual thread. Here the server does. */
    @Test
    void anInterruptOfTheThreadThatSendsFailsNobodyElsesCall() throws Exception {
        connect(1);
        firstOnTheWire();
        Call second = queued("second");
        Call third = queued("third");
        firstMayEnd.countDown();
        await().until(() -> arrived.contains("second"));
        breaks.set(true);
        second.thread().interrupt();
        secondMayEnd.countDown();
        assertThat(third.result().get()).isEqualTo("third");
    }

    /** Otherwise one broken connection would count as many failures, and open the circuit breaker. */
    @Test
    void aConnectionThatBreaksFailsOnlyTheCallThatWasSentFirst() throws Exception {
        connect(1);
        Call first = firstOnTheWire();
        Call second = queued("second");
        Call third = queued("third");
        Call fourth = queued("fourth");
        breaks.set(true);
        secondMayEnd.countDown();
        firstMayEnd.countDown();
        assertThat(first.result().get()).isEqualTo("first");
        assertThat(second.result()).failsWithin(LONG).withThrowableThat().withMessageContaining("Connection");
        assertThat(third.result().get()).isEqualTo("third");
        assertThat(fourth.result().get()).isEqualTo("fourth");
        assertThat(arrived.stream().filter("second"::equals)).hasSize(1);
    }

    /** As an error of the JVM deep in a stack may do, wherever it happens. */
    @Test
    void aCallerThatEndsWithAnErrorLeavesItsPlaceToOthers() {
        connect(1);
        AtomicBoolean fails = new AtomicBoolean(true);
        FlatCombiner combiner = new FlatCombiner(
                () -> {
                    if (fails.getAndSet(false)) {
                        throw new StackOverflowError();
                    }
                    return provider.getConnection();
                },
                new CallPipeline(LONG, null, () -> {}),
                1,
                LONG);
        List<RedisCall> calls = List.of(RedisCall.evalsha(SCRIPT, RedisCall.bytes("third")));
        assertThatThrownBy(() -> combiner.ask(calls)).isInstanceOf(StackOverflowError.class);
        assertThat(combiner.ask(calls)).hasSize(1);
    }

    @Test
    void aCallThatWaitsWhenTheStorageIsClosedEndsWithItsLeader() throws Exception {
        connect(1);
        Call first = firstOnTheWire();
        Call third = queued("third");
        redis.close();
        firstMayEnd.countDown();
        assertThat(first.result().get()).isEqualTo("first");
        assertThat(third.result()).failsWithin(LONG).withThrowableThat().withMessageContaining("the storage is closed");
        assertThat(arrived).doesNotContain("third");
    }
}
