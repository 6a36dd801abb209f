package io.idempotence.server.redis.internal.jedis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.internal.Causes;
import io.idempotence.server.redis.internal.LuaScript;
import io.idempotence.server.redis.internal.Redis.NothingWrittenException;
import io.idempotence.server.storage.AtOnce;
import java.io.IOException;
import java.io.OutputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Predicate;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.ShrinkingMode;
import net.jqwik.api.Tag;
import org.apache.commons.pool2.BasePooledObjectFactory;
import org.apache.commons.pool2.PooledObject;
import org.apache.commons.pool2.impl.DefaultPooledObject;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.Connection;
import redis.clients.jedis.ConnectionPool;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.args.Rawable;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;

/**
 * Random callers, interrupts and faults over real sockets. What each caller gets is compared with what the server replied to that caller's
 * key, which occurs once, and with the faults in the batch that its call was sent in.
 */
@Tag("jedis")
class FlatCombinerPropertiesTest {
    private static final LuaScript SCRIPT = LuaScript.load("find.lua", byte[].class);
    /** Runs with faults wait for timeouts most of the time. */
    private static final int RUNS_AT_A_TIME = 3;

    private static final int CALLERS = 12;
    private static final int CALLS = 10;
    private static final Duration LONG = Duration.ofSeconds(5);
    /** Long enough that only silence times out. */
    private static final Duration SHORT = Duration.ofSeconds(1);

    private static final int LOANS_PER_FAULT = 20;

    /** What the server does with a call. */
    private enum Fate {
        REPLY,
        ERROR,
        NO_SCRIPT,
        READ_ONLY,
        LOADING,
        MOVED,
        ASK,
        /** No reply, while the next calls have theirs. */
        SKIPPED,
        TWICE,
        WRONG_TYPE,
        GARBAGE,
        CUT_OFF,
        CLOSED,
        /** The caller's side fails before the call is written. */
        NOT_WRITTEN,
        SILENCE;

        /** Whether the driver waits for more than the server sends. From garbage it reads a length, and waits for as many bytes. */
        boolean isWithoutEnd() {
            return this == SKIPPED || this == GARBAGE || this == SILENCE;
        }

        boolean isError() {
            return this != REPLY && compareTo(SKIPPED) < 0;
        }

        boolean leavesItsBatchInDoubt() {
            return compareTo(SKIPPED) >= 0;
        }
    }

    private enum Outcome {
        REPLIED,
        REFUSED,
        NOT_SENT,
        IN_DOUBT,
        TIMED_OUT
    }

    /** A fault on the caller's side. */
    private static final class InjectedException extends JedisException {
        private static final long serialVersionUID = 1L;

        InjectedException(String where) {
            super(where);
        }
    }

    /** A connection that records the keys that it sends during each loan. The first of them is that of the leader. */
    private static final class NotingConnection extends Connection {
        private final Map<String, List<String>> batches;
        private final Predicate<String> fails;
        private List<String> batch = List.of();

        NotingConnection(
                HostAndPort server,
                JedisClientConfig config,
                Map<String, List<String>> batches,
                Predicate<String> fails) {
            super(server, config);
            this.batches = batches;
            this.fails = fails;
        }

        @Override
        public void sendCommand(CommandArguments arguments) {
            if (arguments.getCommand() == Protocol.Command.EVALSHA) {
                List<Rawable> parts = new ArrayList<>();
                arguments.forEach(parts::add);
                // EVALSHA, digest, number of keys, key
                String key = RedisCall.text(parts.get(3).getRaw());
                batch.add(key);
                batches.put(key, batch);
                if (fails.test(key)) {
                    throw new InjectedException("writing " + key);
                }
            }
            super.sendCommand(arguments);
        }
    }

    /** One run. */
    private static final class Chaos {
        private final long seed;
        private final Random random;
        private final boolean faulty;
        private final Duration replyTimeout;
        private final QueuedCalls.Threads threads;
        /** A reply too few and one too many in the same batch are as many as there should be. Nobody could notice it. */
        private final Fate otherRuns;

        private final Map<String, Integer> arrived = new ConcurrentHashMap<>();
        private final Map<String, Outcome> outcomes = new ConcurrentHashMap<>();
        private final Map<String, List<String>> batches = new ConcurrentHashMap<>();
        private final Map<String, RuntimeException> failures = new ConcurrentHashMap<>();
        private final Set<String> interrupted = ConcurrentHashMap.newKeySet();
        private final AtomicInteger loans = new AtomicInteger();
        private final Queue<Thread> callers = new ConcurrentLinkedQueue<>();
        /** How many calls arrive before the pool is closed. */
        private final int callsBeforeClose;

        private volatile @Nullable ConnectionPool pool;
        private volatile boolean isOver;
        private long longestPause;

        Chaos(long seed, boolean faulty) {
            this(seed, faulty, Integer.MAX_VALUE);
        }

        Chaos(long seed, boolean faulty, int callsBeforeClose) {
            this.callsBeforeClose = callsBeforeClose;
            this.seed = seed;
            this.random = new Random(seed);
            this.faulty = faulty;
            this.otherRuns = random.nextBoolean() ? Fate.SKIPPED : Fate.TWICE;
            this.replyTimeout = faulty ? SHORT : LONG;
            this.threads = QueuedCalls.Threads.areVirtualOnesThere() && random.nextBoolean()
                    ? QueuedCalls.Threads.VIRTUAL
                    : QueuedCalls.Threads.PLATFORM;
        }

        Fate fateOf(String key) {
            int dice = new Random(seed ^ key.hashCode()).nextInt(400);
            Fate[] faults = Fate.values();
            Fate fate = !faulty || isOver || dice >= 2 * faults.length ? Fate.REPLY : faults[dice / 2];
            return fate == otherRuns ? Fate.REPLY : fate;
        }

        void reply(ScriptedRedis.Command command, OutputStream out) throws IOException {
            String key = command.key();
            String usual = ScriptedRedis.usual(command);
            Fate fate = fateOf(key);
            if (!command.isScript()) {
                ScriptedRedis.write(out, usual);
                return;
            }
            arrived.merge(key, 1, Integer::sum);
            if (arrived.size() >= callsBeforeClose) {
                Objects.requireNonNull(pool).close();
            }
            switch (fate) {
                case REPLY -> ScriptedRedis.write(out, usual);
                case ERROR, NO_SCRIPT, READ_ONLY, LOADING, MOVED, ASK ->
                    ScriptedRedis.write(out, "-" + errorOf(key) + "\r\n");
                case SKIPPED -> {}
                case TWICE -> ScriptedRedis.write(out, usual + usual);
                case WRONG_TYPE -> ScriptedRedis.write(out, ":1\r\n");
                case GARBAGE -> ScriptedRedis.write(out, "$x\r\n");
                case CUT_OFF -> {
                    ScriptedRedis.write(out, usual.substring(0, usual.length() / 2));
                    throw new IOException("cut off");
                }
                case CLOSED, NOT_WRITTEN -> throw new IOException("closed");
                case SILENCE -> {
                    awaitSilence();
                    throw new IOException("silent for long enough");
                }
            }
        }

        private String errorOf(String key) {
            return switch (fateOf(key)) {
                case ERROR -> "OOM " + key;
                case NO_SCRIPT -> "NOSCRIPT " + key;
                case READ_ONLY -> "READONLY " + key;
                case LOADING -> "LOADING " + key;
                case MOVED -> "MOVED " + slotOf(key) + " 127.0.0.1:1";
                case ASK -> "ASK " + slotOf(key) + " 127.0.0.1:1";
                default -> "no error of " + key;
            };
        }

        /** A number that no other key of a caller has. */
        private static String slotOf(String key) {
            return key.replaceAll("[^0-9]", "0");
        }

        private void awaitSilence() {
            try {
                TimeUnit.MILLISECONDS.sleep(2 * replyTimeout.toMillis());
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
                failures.put(key, e.reason());
                return Outcome.NOT_SENT;
            } catch (RuntimeException e) {
                failures.put(key, e);
                return JedisErrors.isTimeout(e) ? Outcome.TIMED_OUT : Outcome.IN_DOUBT;
            }
            if (reply instanceof JedisDataException refused) {
                assertThat(refused).as("the error of %s", key).hasMessage(errorOf(key));
                return Outcome.REFUSED;
            }
            assertThat(RedisCall.text(((List<?>) reply).get(0)))
                    .as("the reply to %s", key)
                    .isEqualTo(key);
            return Outcome.REPLIED;
        }

        private void callOften(FlatCombiner combiner, String name) {
            callers.add(Thread.currentThread());
            for (int i = 0; i < CALLS; i++) {
                String key = name + "-" + i;
                outcomes.put(key, call(combiner, key));
                if (Thread.interrupted()) {
                    interrupted.add(key);
                }
            }
        }

        void run() throws Exception {
            int connections = 1 + random.nextInt(3);
            Duration maxWait = Duration.ofMillis(1 + random.nextInt(40));
            ExecutorService executor = Executors.newFixedThreadPool(CALLERS, threads::unstarted);
            try (ScriptedRedis server = new ScriptedRedis(this::reply);
                    ConnectionPool pool = pool(server, connections)) {
                RoundTripSender sender = new RoundTripSender(replyTimeout, null, new LargeRoundTrips(), () -> {});
                this.pool = pool;
                FlatCombiner combiner = new FlatCombiner(() -> lent(pool), sender, connections, maxWait);
                List<Future<?>> ends = new ArrayList<>();
                for (int i = 0; i < CALLERS; i++) {
                    String name = "caller-" + i;
                    ends.add(executor.submit(() -> callOften(combiner, name)));
                }
                interruptUntilTheEndOf(ends);
                if (!pool.isClosed()) {
                    isOver = true;
                    AtomicInteger more = new AtomicInteger();
                    // The first ones may meet connections that the server has closed.
                    await("a call after all faults")
                            .until(() -> call(combiner, "more-" + more.incrementAndGet()) == Outcome.REPLIED);
                    isOver = false;
                }
            } finally {
                executor.shutdownNow();
            }
            assertThat(outcomes).hasSize(CALLERS * CALLS);
            outcomes.forEach(this::check);
            assertThat(failures.values().stream().filter(failure -> isInjected(failure, "borrowing")))
                    .as("a caller that gets no connection fails alone")
                    .doesNotHaveDuplicates();
        }

        private ConnectionPool pool(ScriptedRedis server, int connections) {
            JedisClientConfig config = DefaultJedisClientConfig.builder()
                    .socketTimeoutMillis((int) replyTimeout.toMillis())
                    .build();
            ConnectionPoolConfig limits = new ConnectionPoolConfig();
            limits.setMaxTotal(connections);
            return new ConnectionPool(
                    new BasePooledObjectFactory<>() {
                        @Override
                        public Connection create() {
                            return new NotingConnection(
                                    server.address(), config, batches, key -> fateOf(key) == Fate.NOT_WRITTEN);
                        }

                        @Override
                        public PooledObject<Connection> wrap(Connection connection) {
                            return new DefaultPooledObject<>(connection);
                        }

                        @Override
                        public void destroyObject(PooledObject<Connection> connection) {
                            connection.getObject().disconnect();
                        }
                    },
                    limits);
        }

        private Connection lent(ConnectionPool pool) {
            if (faulty && !isOver && new Random(seed + loans.incrementAndGet()).nextInt(LOANS_PER_FAULT) == 0) {
                throw new InjectedException("borrowing a connection");
            }
            NotingConnection connection = (NotingConnection) pool.getResource();
            connection.batch = new ArrayList<>();
            return connection;
        }

        private void interruptUntilTheEndOf(List<Future<?>> ends) throws Exception {
            while (ends.stream().anyMatch(end -> !end.isDone())) {
                if (random.nextInt(4) == 0) {
                    callers.stream().skip(random.nextInt(CALLERS)).findFirst().ifPresent(Thread::interrupt);
                }
                long begin = System.nanoTime();
                TimeUnit.MILLISECONDS.sleep(1);
                longestPause = Math.max(longestPause, System.nanoTime() - begin);
            }
            for (Future<?> end : ends) {
                end.get();
            }
        }

        private void check(String key, Outcome outcome) {
            int times = arrived.getOrDefault(key, 0);
            assertThat(times)
                    .as("how often %s arrived, whose outcome is %s", key, outcome)
                    .isBetween(outcome == Outcome.REPLIED || outcome == Outcome.REFUSED ? 1 : 0, 1);
            switch (outcome) {
                case REPLIED -> {
                    assertThat(fateOf(key)).isEqualTo(Fate.REPLY);
                    assertThat(batches.get(key)).noneMatch(call -> fateOf(call).leavesItsBatchInDoubt());
                }
                case REFUSED -> {
                    assertThat(fateOf(key)).matches(Fate::isError);
                    assertThat(batches.get(key)).noneMatch(call -> fateOf(call).leavesItsBatchInDoubt());
                }
                case NOT_SENT -> assertThat(batches).doesNotContainKey(key);
                case IN_DOUBT ->
                    assertThat(mayBeInDoubt(key))
                            .as("%s, in doubt, has a fault in its batch %s", key, batches.get(key))
                            .isTrue();
                case TIMED_OUT -> {
                    List<Fate> fates = batches.getOrDefault(key, List.of()).stream()
                            .map(this::fateOf)
                            .toList();
                    assertThat(fates.stream().anyMatch(Fate::isWithoutEnd) || didTheMachinePause())
                            .as(
                                    "the batch of %s, with %s, has a reason to time out with %s",
                                    key, fates, failures.get(key))
                            .isTrue();
                }
            }
        }

        /** Whether this process was kept from running for so long that a reply may have come too late. */
        private boolean didTheMachinePause() {
            return longestPause > replyTimeout.toNanos() / 4;
        }

        private static boolean isInjected(Throwable failure, String where) {
            return Causes.of(failure)
                    .anyMatch(cause -> cause instanceof InjectedException
                            && cause.getMessage().startsWith(where));
        }

        private boolean mayBeInDoubt(String key) {
            // An interrupt closes the connection of a virtual thread, perhaps before all calls of its batch are sent.
            boolean breaksConnections = threads == QueuedCalls.Threads.VIRTUAL;
            List<String> batch = batches.get(key);
            if (batch == null) {
                return isInjected(failures.get(key), "writing") || (breaksConnections && !interrupted.isEmpty());
            }
            return batch.stream().anyMatch(call -> fateOf(call).leavesItsBatchInDoubt())
                    || (breaksConnections && interrupted.contains(batch.get(0)));
        }
    }

    @Property(tries = 4, shrinking = ShrinkingMode.OFF)
    void everyCallerGetsItsOwnReplyOrCorrectlyLearnsWhetherItWasSent(@ForAll long seed) throws Exception {
        AtomicLong next = new AtomicLong(seed);
        AtOnce.run(RUNS_AT_A_TIME, () -> {
            new Chaos(next.getAndIncrement(), true).run();
            return null;
        });
    }

    @Property(tries = 8, shrinking = ShrinkingMode.OFF)
    void nothingIsInDoubtWithoutAFault(@ForAll long seed) throws Exception {
        new Chaos(seed, false).run();
    }

    @Property(tries = 4, shrinking = ShrinkingMode.OFF)
    void aCallWhileThePoolIsClosedGetsItsReplyOrIsNotSent(@ForAll long seed) throws Exception {
        Chaos chaos = new Chaos(seed, false, new Random(seed).nextInt(CALLERS * CALLS / 2));
        chaos.run();
        assertThat(chaos.outcomes).containsValue(Outcome.NOT_SENT);
    }
}
