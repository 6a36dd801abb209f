package io.idempotence.server.redis.internal.jedis;

import static org.awaitility.Awaitility.await;

import io.idempotence.server.redis.internal.LuaScript;
import java.io.IOException;
import java.io.OutputStream;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Assumptions;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.providers.PooledConnectionProvider;

/**
 * Callers whose calls a test sends together: the server keeps a first call on the only connection waiting until the others are queued, one
 * after the other. The first of them then sends them all.
 */
final class QueuedCalls implements AutoCloseable {
    static final LuaScript SCRIPT = LuaScript.load("find.lua", byte[].class);
    static final Duration LONG = Duration.ofSeconds(20);

    /** A placeholder in a reply for what the server replies by default. */
    static final String USUAL = "(usual)";

    /** Instead of a reply: the server closes the connection. */
    static final String CLOSED = "(closed)";

    private static final String FIRST = "first";

    private final Map<String, CountDownLatch> held = new ConcurrentHashMap<>();
    private final Map<String, Queue<String>> replies = new ConcurrentHashMap<>();
    private final Threads threads;
    private final PooledConnectionProvider provider;
    private final FlatCombiner combiner;
    private final PooledRedis redis;
    final ScriptedRedis server = new ScriptedRedis(this::reply);

    /** The kind of the callers' threads. */
    enum Threads {
        PLATFORM,
        VIRTUAL;

        static boolean areVirtualOnesThere() {
            return Runtime.version().feature() >= 21;
        }

        /** Skips the test if there are none. */
        Thread unstarted(Runnable task) {
            if (this == PLATFORM) {
                return new Thread(task);
            }
            Assumptions.assumeTrue(
                    areVirtualOnesThere(), () -> "virtual threads need Java 21, this is " + Runtime.version());
            try {
                Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
                return (Thread) Class.forName("java.lang.Thread$Builder")
                        .getMethod("unstarted", Runnable.class)
                        .invoke(builder, task);
            } catch (ReflectiveOperationException e) {
                throw new AssertionError(e);
            }
        }
    }

    record Call<T>(Thread thread, FutureTask<T> result) {
        T get() throws ExecutionException, InterruptedException {
            return result.get();
        }

        boolean isWaiting() {
            return thread.getState() == Thread.State.TIMED_WAITING;
        }

        /** What the call ended with instead of a result. */
        Throwable failure() throws InterruptedException {
            try {
                throw new AssertionError("the call had a result: " + result.get());
            } catch (ExecutionException e) {
                return e.getCause();
            }
        }
    }

    QueuedCalls(int connections) {
        this(connections, null, Threads.PLATFORM);
    }

    QueuedCalls(int connections, @Nullable ReplicaWait replicaWait, Threads threads) {
        this.threads = threads;
        ConnectionPoolConfig pool = new ConnectionPoolConfig();
        pool.setMaxTotal(connections);
        provider = new PooledConnectionProvider(
                server.address(),
                DefaultJedisClientConfig.builder()
                        .socketTimeoutMillis((int) LONG.toMillis())
                        .build(),
                pool);
        PooledRedis.ConnectionLimits limits = new PooledRedis.ConnectionLimits(connections, LONG, LONG);
        combiner = new FlatCombiner(
                provider::getConnection,
                new RoundTripSender(LONG, replicaWait, new LargeRoundTrips(), () -> {}),
                connections,
                LONG);
        redis = new PooledRedis.Primary("Redis", provider, limits, replicaWait, provider::close);
    }

    /** Lets the server reply to a key otherwise than by default, the first time with the first reply, and so on. */
    void willReply(String key, String... resp) {
        replies.put(key, new ArrayDeque<>(List.of(resp)));
    }

    /** Keeps the server from replying to a key until {@link #letGo}. */
    void hold(String key) {
        held.put(key, new CountDownLatch(1));
    }

    void letGo(String key) {
        held.get(key).countDown();
    }

    /** The usual reply to a key. */
    static String found(String key) {
        return ScriptedRedis.usual(new ScriptedRedis.Command(0, "EVALSHA", key));
    }

    private void reply(ScriptedRedis.Command command, OutputStream out) throws IOException {
        String key = command.isScript() ? command.key() : command.name();
        CountDownLatch latch = held.get(key);
        if (latch != null) {
            try {
                latch.await();
            } catch (InterruptedException e) {
                throw new IOException(e);
            }
        }
        Queue<String> next = replies.getOrDefault(key, new ArrayDeque<>());
        String reply = next.isEmpty() ? USUAL : next.remove();
        if (reply.equals(CLOSED)) {
            throw new IOException("the test closes the connection");
        }
        ScriptedRedis.write(out, reply.replace(USUAL, ScriptedRedis.usual(command)));
    }

    /** The connections, for a combiner of the test's own. */
    PooledConnectionProvider connections() {
        return provider;
    }

    /** Callers of this one get the replies as they are, and nothing is repeated. */
    FlatCombiner combiner() {
        return combiner;
    }

    PooledRedis redis() {
        return redis;
    }

    static RedisCall find(String key) {
        return RedisCall.evalsha(SCRIPT, RedisCall.bytes(key));
    }

    /** The key that a reply is about, or the text of an error. */
    static String told(Object reply) {
        return reply instanceof Exception error ? error.getMessage() : RedisCall.text(((List<?>) reply).get(0));
    }

    <T> Call<T> start(Callable<T> call) {
        FutureTask<T> result = new FutureTask<>(call);
        Thread thread = threads.unstarted(result);
        thread.start();
        return new Call<>(thread, result);
    }

    /** A call through {@link #redis}. */
    Call<String> start(String key) {
        return start(() -> told(redis.run(SCRIPT, RedisCall.bytes(key))));
    }

    /** A call that is in the queue when this returns. */
    <T> Call<T> queued(Callable<T> call) {
        Call<T> started = start(call);
        until(started::isWaiting);
        return started;
    }

    /** The same through {@link #redis}. */
    Call<String> queued(String key) {
        return queued(() -> told(redis.run(SCRIPT, RedisCall.bytes(key))));
    }

    /** The same through {@link #combiner}. Its result is the replies. */
    Call<List<Object>> queued(RedisCall... calls) {
        return queued(() -> combiner.ask(List.of(calls)));
    }

    /** Holds up a first call through {@link #redis}. */
    Call<String> holdUp() {
        return holdUp(() -> told(redis.run(SCRIPT, RedisCall.bytes(FIRST))));
    }

    /** The same through {@link #combiner}. */
    Call<List<Object>> holdUpCombiner() {
        return holdUp(() -> combiner.ask(List.of(find(FIRST))));
    }

    /** The same for any call whose key is {@code first}. */
    <T> Call<T> holdUp(Callable<T> call) {
        hold(FIRST);
        Call<T> first = start(call);
        arrived(FIRST);
        return first;
    }

    /** Sends what is queued by now. */
    void sendQueued() {
        letGo(FIRST);
    }

    void arrived(String key) {
        until(() -> count(key) > 0);
    }

    /** How often a key arrived. */
    long count(String key) {
        return server.received().stream()
                .filter(command -> command.key().equals(key))
                .count();
    }

    /** What arrived after the first call. */
    List<String> receivedAfterFirst() {
        return server.received().stream()
                .map(ScriptedRedis.Command::toString)
                .skip(1)
                .toList();
    }

    static void until(Callable<Boolean> condition) {
        await().pollDelay(Duration.ZERO).pollInterval(Duration.ofMillis(2)).until(condition);
    }

    @Override
    public void close() throws IOException, InterruptedException {
        held.values().forEach(CountDownLatch::countDown);
        redis.close();
        server.close();
    }
}
