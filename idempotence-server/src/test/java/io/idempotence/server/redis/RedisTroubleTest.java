package io.idempotence.server.redis;

import static io.idempotence.server.Refusals.refusalOf;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.OnAbandoned;
import io.idempotence.http.Refusal;
import io.idempotence.server.ExecutionRefusedException;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.StorageUnavailableException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.Jedis;

/** Executions while Redis is slow, read-only or unreachable, over real sockets. */
@Tag("redis-7")
class RedisTroubleTest {
    private static final int TIMEOUT_MILLIS = 2_000;

    private final IdempotenceId id = IdempotenceId.of("order-1");
    private final List<IdempotenceEvent> events = new CopyOnWriteArrayList<>();
    private final AtomicInteger runs = new AtomicInteger();
    private final List<AutoCloseable> open = new ArrayList<>();
    private EmbeddedRedis redis;
    private DelayProxy wire;

    @BeforeEach
    void start() {
        redis = EmbeddedRedis.start();
        wire = new DelayProxy(redis.port());
    }

    @AfterEach
    void stop() throws Exception {
        wire.letGo();
        for (AutoCloseable each : open) {
            each.close();
        }
        wire.close();
        redis.close();
    }

    private Idempotence overWire(IdempotencePolicy policy) throws Exception {
        // A busy machine may need longer to connect than the tests let a call take.
        RedisIdempotenceStorage storage = await().ignoreException(StorageUnavailableException.class)
                .until(
                        () -> RedisIdempotenceStorage.builder(wire.address())
                                .client(DefaultJedisClientConfig.builder()
                                        .connectionTimeoutMillis(TIMEOUT_MILLIS)
                                        .socketTimeoutMillis(TIMEOUT_MILLIS)
                                        .build())
                                .build(),
                        opened -> true);
        Idempotence idempotence = over(storage, policy);
        // From now on the server has the scripts, so a call that arrives is executed.
        await().ignoreException(ExecutionRefusedException.class)
                .until(() -> idempotence.execute(IdempotenceId.of("first"), () -> ""), String::isEmpty);
        events.clear();
        return idempotence;
    }

    private Idempotence over(RedisIdempotenceStorage storage, IdempotencePolicy policy) {
        Idempotence idempotence = Idempotence.builder(storage)
                .policy(policy)
                .listener((event, which) -> events.add(event))
                .build();
        open.add(idempotence);
        return idempotence;
    }

    private String work() {
        return "run " + runs.incrementAndGet();
    }

    private void assertRefused(Idempotence idempotence, Refusal refusal) {
        assertThat(refusalOf(() -> idempotence.execute(id, this::work))).isEqualTo(refusal);
    }

    /** The result, once no attempt is refused any more as in progress, or as one of {@code others}. */
    private String awaitResult(Idempotence idempotence, Refusal... others) {
        AtomicReference<String> result = new AtomicReference<>();
        await().until(() -> {
            try {
                result.set(idempotence.execute(id, this::work));
                return true;
            } catch (ExecutionRefusedException e) {
                assertThat(EnumSet.of(Refusal.IN_PROGRESS, others)).contains(e.refusal());
                return false;
            }
        });
        return result.get();
    }

    private void slowAtTheClaim(Runnable slow) throws Exception {
        Idempotence idempotence = overWire(IdempotencePolicy.defaults());
        slow.run();
        long start = System.nanoTime();

        assertRefused(idempotence, Refusal.STORAGE_UNAVAILABLE);

        assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofSeconds(20));
        assertThat(runs).hasValue(0);
        wire.letGo();
        // A busy machine may take longer than the calls over the wire may.
        assertThat(awaitResult(idempotence, Refusal.STORAGE_UNAVAILABLE)).isEqualTo("run 1");
        assertThat(awaitResult(over(redis.connect(), IdempotencePolicy.defaults())))
                .isEqualTo("run 1");
        assertThat(runs).hasValue(1);
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName("T21, P6: a claim that arrives when its caller has given up runs nothing and blocks nobody for long")
    void slowToTheServerAtTheClaim() throws Exception {
        slowAtTheClaim(wire::holdRequests);
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName("T21, P6: a claim whose reply comes too late runs nothing and is given back")
    void slowFromTheServerAtTheClaim() throws Exception {
        slowAtTheClaim(wire::holdReplies);
    }

    /** The result of an execution that meets the trouble once it runs. On a busy machine, earlier attempts may be refused. */
    private String onceClaimed(Idempotence idempotence, Runnable trouble) {
        AtomicBoolean begun = new AtomicBoolean();
        return await().ignoreExceptionsMatching(e -> e instanceof ExecutionRefusedException && !begun.get())
                .until(
                        () -> idempotence.execute(
                                id,
                                first(
                                        () -> {
                                            begun.set(true);
                                            events.clear();
                                            trouble.run();
                                        },
                                        this::work)),
                        result -> true);
    }

    private void slowAtTheEnd(Runnable slow) throws Exception {
        Idempotence idempotence = overWire(IdempotencePolicy.defaults());

        assertThat(onceClaimed(idempotence, slow)).isEqualTo("run 1");

        assertThat(events).contains(IdempotenceEvent.STORAGE_ERROR);
        wire.letGo();
        // A busy machine may take longer than the calls over the wire may.
        assertThat(awaitResult(idempotence, Refusal.STORAGE_UNAVAILABLE)).isEqualTo("run 1");
        assertThat(runs).hasValue(1);
        assertThat(events).doesNotContain(IdempotenceEvent.FENCED, IdempotenceEvent.LOST);
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName("T22: an end that arrives too late is recorded once")
    void slowToTheServerAtTheEnd() throws Exception {
        slowAtTheEnd(wire::holdRequests);
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName("T11, T22: a completion whose reply is late is recorded once")
    void slowFromTheServerAtTheEnd() throws Exception {
        slowAtTheEnd(wire::holdReplies);
    }

    private static Callable<String> first(Runnable trouble, Callable<String> work) {
        return () -> {
            trouble.run();
            return work.call();
        };
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName(
            "P6, T22: a primary that became a read-only replica lets nothing run, and records the end when it is primary again")
    void readOnlyAfterAFailover() throws Exception {
        Idempotence idempotence = over(redis.connect(), IdempotencePolicy.defaults());
        try (Jedis jedis = redis.jedis()) {
            String result = idempotence.execute(id, first(() -> jedis.replicaof("127.0.0.1", 1), this::work));

            assertThat(result).isEqualTo("run 1");
            assertThat(events).containsExactly(IdempotenceEvent.CLAIMED, IdempotenceEvent.STORAGE_ERROR);
            assertThat(refusalOf(() -> idempotence.execute(IdempotenceId.of("order-2"), this::work)))
                    .isEqualTo(Refusal.STORAGE_UNAVAILABLE);
            assertThat(runs).hasValue(1);

            jedis.replicaofNoOne();
            assertThat(awaitResult(idempotence)).isEqualTo("run 1");
            assertThat(idempotence.execute(IdempotenceId.of("order-2"), this::work))
                    .isEqualTo("run 2");
        }
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName("T9, T22: Redis away for longer than the lease: nothing is lost if nobody took over")
    void awayForLongerThanTheLease() throws Exception {
        redis.close();
        redis = EmbeddedRedis.startPersistent();
        Duration lease = Duration.ofMillis(300);
        Idempotence idempotence =
                over(redis.connect(), IdempotencePolicy.builder().lease(lease).build());

        String result = idempotence.execute(
                id,
                first(
                        () -> {
                            redis.kill();
                            long down = System.nanoTime();
                            await().until(() -> System.nanoTime() - down
                                    > lease.multipliedBy(2).toNanos());
                        },
                        this::work));

        assertThat(result).isEqualTo("run 1");
        assertThat(events).contains(IdempotenceEvent.STORAGE_ERROR);
        redis.restart();
        await().ignoreExceptions()
                .until(() -> idempotence.execute(id, this::work).equals("run 1"));
        assertThat(runs).hasValue(1);
        assertThat(events).doesNotContain(IdempotenceEvent.FENCED, IdempotenceEvent.LOST);
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName("P3, T14: Redis away for longer than the lease: after a take-over, the late owner writes nothing")
    void awayForLongerThanTheLeaseAndTakenOver() throws Exception {
        IdempotencePolicy reExecute = IdempotencePolicy.builder()
                .lease(Duration.ofSeconds(1))
                .onAbandoned(OnAbandoned.RE_EXECUTE)
                .build();
        Idempotence cutOff = overWire(reExecute);
        Idempotence other = over(redis.connect(), reExecute);

        String late = onceClaimed(cutOff, () -> {
            wire.holdRequests();
            assertThat(awaitResult(other)).isEqualTo("run 1");
            // What the late owner had sent while it was cut off arrives now: renewals of a lost claim.
            wire.letGo();
        });

        assertThat(late).isEqualTo("run 1");
        assertThat(runs).hasValue(2);
        // A renewal may have found it first, and reports it on another thread.
        await().untilAsserted(() -> assertThat(events).contains(IdempotenceEvent.TAKE_OVER, IdempotenceEvent.FENCED));
        assertThat(other.execute(id, this::work)).isEqualTo("run 1");
    }

    /** Redis refuses writes and {@code PING} then, and nothing else. */
    @Test
    @Execution(ExecutionMode.CONCURRENT)
    void whatIsRecordedIsReplayedWhileRedisCannotSaveToItsDisk() throws Exception {
        RedisIdempotenceStorage storage = redis.connect();
        Idempotence idempotence = over(storage, IdempotencePolicy.defaults());
        idempotence.execute(id, this::work);
        try (Jedis jedis = redis.jedis()) {
            Path dump = Path.of(jedis.configGet("dir").get("dir"), "dump.rdb");
            Files.createDirectories(dump.resolve("in the way"));
            jedis.configSet("save", "3600 1");
            jedis.bgsave();
            await().until(() -> jedis.info("persistence").contains("rdb_last_bgsave_status:err"));
        }
        assertThat(idempotence.execute(id, this::work)).isEqualTo("run 1");
        assertThatThrownBy(() -> storage.claim(Claims.request(Claims.newKey())))
                .isInstanceOf(StorageUnavailableException.class)
                .hasMessageContaining("MISCONF");
        assertThat(runs).hasValue(1);
    }
}
