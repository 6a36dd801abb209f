package io.idempotence.server.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import io.idempotence.server.storage.WriteResult;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.args.ClientPauseMode;

/**
 * A Redis Cluster that moves a slot to another primary while requests run whose records are in it. Applications and operators have the
 * documented rights, and no others.
 */
@Tag("redis-7")
@Tag("jedis")
class RedisSlotsTest {
    private static final int MOVES = 6;
    private static final Duration PATIENT = Duration.ofSeconds(20);

    private static EmbeddedRedisCluster cluster;

    private final List<RedisIdempotenceStorage> open = new ArrayList<>();

    /** A stage of the move. */
    enum Stage {
        BEGUN,
        RECORDS_MOVED,
        ENDED;

        SlotMigration reach(StorageKey key) {
            SlotMigration migration = SlotMigration.begin(cluster, key);
            if (this != BEGUN) {
                migration.moveRecords();
            }
            if (this == ENDED) {
                migration.end();
            }
            return migration;
        }
    }

    @BeforeAll
    static void start() {
        cluster = EmbeddedRedisCluster.startReplicated();
    }

    @AfterAll
    static void stop() {
        cluster.close();
    }

    @AfterEach
    void close() {
        open.forEach(RedisIdempotenceStorage::close);
    }

    /** A storage with the current map of slots. It learns of changes only from the redirections of the servers. */
    private RedisIdempotenceStorage storage(boolean replicated) {
        return replicated ? opened(as("wait").waitForReplicas(1, Duration.ofSeconds(5))) : opened(as());
    }

    private static RedisIdempotenceStorage.Builder as(String... more) {
        return EmbeddedRedis.builder(cluster.addresses()).client(Rights.inCluster(cluster, more));
    }

    private RedisIdempotenceStorage opened(RedisIdempotenceStorage.Builder builder) {
        RedisIdempotenceStorage storage = builder.build();
        open.add(storage);
        return storage;
    }

    @ParameterizedTest
    @CsvSource({
        "BEGUN, false",
        "BEGUN, true",
        "RECORDS_MOVED, false",
        "RECORDS_MOVED, true",
        "ENDED, false",
        "ENDED, true"
    })
    void everyCallFindsARecordWhoseSlotMovesWhileItsRequestRuns(Stage stage, boolean replicated) {
        StorageKey key = Claims.newKey();
        List<RedisIdempotenceStorage> former =
                IntStream.range(0, 6).mapToObj(i -> storage(replicated)).toList();
        Claim claim = Claims.claim(former.get(0), key);

        SlotMigration migration = stage.reach(key);

        assertThat(former.get(0).claim(Claims.request(key))).isInstanceOf(ClaimResult.InProgress.class);
        assertThat(former.get(1).renew(claim, Claims.LEASE)).isEqualTo(new WriteResult.Done());
        assertThat(former.get(2).find(key).map(IdempotenceRecord::state)).contains(State.IN_PROGRESS);
        assertThat(former.get(3).complete(claim, new byte[] {7}, Claims.RETENTION))
                .isEqualTo(new WriteResult.Done());
        assertReplayed(former.get(4), key);
        assertThat(former.get(5).delete(key)).isTrue();

        migration.moveRecords();
        migration.end();
    }

    @ParameterizedTest
    @CsvSource({"RECORDS_MOVED, false", "RECORDS_MOVED, true", "ENDED, false", "ENDED, true"})
    void aClaimThatBeginsMeanwhileIsThereAfterwards(Stage stage, boolean replicated) {
        StorageKey key = Claims.newKey();
        RedisIdempotenceStorage storage = storage(replicated);
        ClaimRequest request = Claims.request(key);
        SlotMigration migration = stage.reach(key);

        assertThat(storage.claim(request)).isInstanceOf(ClaimResult.Claimed.class);
        assertThat(storage.claim(request)).as("T2").isInstanceOf(ClaimResult.Claimed.class);
        assertThat(storage.claim(Claims.request(key))).isInstanceOf(ClaimResult.InProgress.class);
        migration.end();

        Claim claim = new Claim(key, request.fingerprint(), request.owner(), 1);
        assertThat(storage(replicated).complete(claim, new byte[] {7}, Claims.RETENTION))
                .isEqualTo(new WriteResult.Done());
        assertReplayed(storage, key);
    }

    private static void assertReplayed(RedisIdempotenceStorage storage, StorageKey key) {
        assertThat(storage.claim(Claims.request(key)))
                .isInstanceOfSatisfying(
                        ClaimResult.Completed.class,
                        completed -> assertThat(completed.result()).containsExactly(7));
    }

    @ParameterizedTest
    @EnumSource
    void operatorsSeeEveryRecordOnceWhileItsSlotMoves(Stage stage) {
        String namespace = "list-" + stage.name();
        StorageKey key = Claims.newKey(namespace);
        RedisIdempotenceStorage storage = opened(as("scan", "info"));
        Claims.claim(storage, key);
        Claims.claim(storage, Claims.newKey(namespace));
        SlotMigration migration = stage.reach(key);

        try (Stream<IdempotenceRecord> records = storage.list(namespace)) {
            assertThat(records.map(IdempotenceRecord::key)).hasSize(2).contains(key);
        }

        migration.moveRecords();
        migration.end();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aSlotThatMovesToAndFroKeepsOneExecutionPerId(boolean replicated) throws Exception {
        int slot = SlotMigration.slotOf(Claims.newKey());
        List<StorageKey> keys = keys(8, key -> SlotMigration.slotOf(key) == slot);
        RedisIdempotenceStorage first = storage(replicated);
        RedisIdempotenceStorage second = storage(replicated);
        Semaphore replies = new Semaphore(0);
        ExecutorService threads = Executors.newFixedThreadPool(5);
        try {
            Future<?> moves = threads.submit(() -> {
                for (int move = 0; move < MOVES; move++) {
                    Stage.ENDED.reach(keys.get(0));
                    replies.acquire(keys.size() / 2);
                }
                return null;
            });
            List<Future<Integer>> requests = new ArrayList<>();
            for (RedisIdempotenceStorage storage : List.of(first, second, first, second)) {
                requests.add(threads.submit(() -> executions(storage, keys, replies)));
            }
            int executions = 0;
            for (Future<Integer> each : requests) {
                executions += each.get();
            }
            assertThat(executions).isEqualTo(keys.size());
            moves.get();
        } finally {
            threads.shutdownNow();
        }
        for (StorageKey key : keys) {
            assertThat(sentUntilReplied(() -> first.claim(Claims.request(key))))
                    .isInstanceOf(ClaimResult.Completed.class);
        }
    }

    private static List<StorageKey> keys(int count, Predicate<StorageKey> which) {
        return Stream.generate(Claims::newKey).filter(which).limit(count).toList();
    }

    private static List<StorageKey> keysOfSlot(int slot) {
        return keys(4, key -> SlotMigration.slotOf(key) == slot);
    }

    /** A storage with one connection to each primary, which has all its scripts. */
    private RedisIdempotenceStorage oneConnectionToEach() {
        ConnectionPoolConfig one = new ConnectionPoolConfig();
        one.setMaxTotal(1);
        one.setMaxWait(PATIENT);
        RedisIdempotenceStorage storage = opened(RedisIdempotenceStorage.builder(cluster.addresses())
                .pool(one)
                .client(DefaultJedisClientConfig.builder()
                        .from(Rights.inCluster(cluster))
                        .socketTimeoutMillis((int) PATIENT.toMillis())
                        .build()));
        for (EmbeddedRedis node : cluster.nodes()) {
            StorageKey key = keys(1, each -> SlotMigration.owns(node, each)).get(0);
            Claims.claim(storage, key);
            storage.find(key);
        }
        return storage;
    }

    /** Claims all keys at once, while the only connection to a primary is busy. What it is sent afterwards shares a round trip. */
    private static void claimTogether(RedisIdempotenceStorage storage, EmbeddedRedis busy, List<StorageKey> keys)
            throws Exception {
        ExecutorService threads = Executors.newCachedThreadPool();
        try (Jedis jedis = busy.jedis()) {
            for (EmbeddedRedis node : cluster.nodes()) {
                try (Jedis each = node.jedis()) {
                    each.configResetStat();
                }
            }
            StorageKey first = keys(1, key -> SlotMigration.owns(busy, key)).get(0);
            jedis.clientPause(PATIENT.toMillis(), ClientPauseMode.WRITE);
            Future<?> holder = threads.submit(() -> storage.find(first));
            await().until(() -> jedis.info("clients").contains("blocked_clients:1"));
            Set<Thread> waiting = ConcurrentHashMap.newKeySet();
            List<Future<ClaimResult>> claims = new ArrayList<>();
            for (StorageKey key : keys) {
                claims.add(threads.submit(() -> {
                    waiting.add(Thread.currentThread());
                    return storage.claim(Claims.request(key));
                }));
            }
            await().until(() -> waiting.size() == keys.size()
                    && waiting.stream().allMatch(thread -> thread.getState() == Thread.State.TIMED_WAITING));
            jedis.clientUnpause();
            holder.get();
            for (Future<ClaimResult> claim : claims) {
                assertThat(claim.get()).isInstanceOf(ClaimResult.Claimed.class);
            }
        } finally {
            threads.shutdownNow();
        }
    }

    /** How often a primary has executed a command since {@link #claimTogether} began. */
    private static long calls(EmbeddedRedis node, String command) {
        try (Jedis jedis = node.jedis()) {
            Matcher calls =
                    Pattern.compile("cmdstat_" + command + ":calls=(\\d+)").matcher(jedis.info("commandstats"));
            return calls.find() ? Long.parseLong(calls.group(1)) : 0;
        }
    }

    @Test
    void everyCallerOfABatchWhoseSlotIsUnderWayAsksDirectlyBeforeItsCall() throws Exception {
        RedisIdempotenceStorage storage = oneConnectionToEach();
        StorageKey moving = Claims.newKey();
        SlotMigration migration = Stage.RECORDS_MOVED.reach(moving);
        EmbeddedRedis target = migration.target();
        List<StorageKey> others = keys(4, key -> SlotMigration.owns(target, key));
        List<StorageKey> moved = keysOfSlot(SlotMigration.slotOf(moving));

        claimTogether(storage, target, alternating(moved, others));

        assertThat(calls(target, "asking")).isEqualTo(moved.size());
        assertThat(calls(target, "evalsha")).isEqualTo(1 + moved.size() + others.size());
        migration.end();
    }

    @Test
    void aSlotThatHasMovedConcernsOnlyItsOwnCallersInABatch() throws Exception {
        RedisIdempotenceStorage storage = oneConnectionToEach();
        StorageKey moving = Claims.newKey();
        SlotMigration migration = Stage.ENDED.reach(moving);
        EmbeddedRedis source = migration.source();
        List<StorageKey> others = keys(4, key -> SlotMigration.owns(source, key));
        List<StorageKey> moved = keysOfSlot(SlotMigration.slotOf(moving));

        claimTogether(storage, source, alternating(moved, others));

        assertThat(calls(source, "evalsha")).isEqualTo(1 + others.size());
        assertThat(calls(migration.target(), "evalsha")).isEqualTo(moved.size());
    }

    private static List<StorageKey> alternating(List<StorageKey> some, List<StorageKey> others) {
        return IntStream.range(0, some.size())
                .boxed()
                .flatMap(i -> Stream.of(some.get(i), others.get(i)))
                .toList();
    }

    /** Claims, renews and completes every ID it can, and says how many. */
    private static int executions(RedisIdempotenceStorage storage, List<StorageKey> keys, Semaphore replies) {
        int executed = 0;
        for (StorageKey key : keys) {
            ClaimRequest request = Claims.request(key);
            if (sentUntilReplied(() -> storage.claim(request)) instanceof ClaimResult.Claimed claimed) {
                executed++;
                Claim claim = claimed.claim();
                assertThat(sentUntilReplied(() -> storage.renew(claim, Claims.LEASE)))
                        .isEqualTo(new WriteResult.Done());
                assertThat(sentUntilReplied(() -> storage.complete(claim, new byte[] {7}, Claims.RETENTION)))
                        .isEqualTo(new WriteResult.Done());
            }
            replies.release();
        }
        return executed;
    }

    /** A slot under way may be nobody's for longer than the driver is patient. That is a 503, and the same owner may ask again. */
    private static <T> T sentUntilReplied(Supplier<T> call) {
        while (true) {
            try {
                return call.get();
            } catch (StorageUnavailableException e) {
                assertThat(e).hasMessageContaining("Redis Cluster at");
            }
        }
    }
}
