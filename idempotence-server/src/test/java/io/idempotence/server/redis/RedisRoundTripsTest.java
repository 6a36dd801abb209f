package io.idempotence.server.redis;

import static io.idempotence.server.Refusals.refusalOf;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import io.idempotence.server.Idempotence;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.WriteResult;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Pipeline;

/** Tests of what each attempt costs on a connection that is open: counted on the wire, and by the server. */
@Tag("redis-7")
class RedisRoundTripsTest extends RedisTestBase {
    private final RoundTrips trips = new RoundTrips();
    private final IdempotenceId id =
            IdempotenceId.of("order-" + UUID.randomUUID().toString());
    private DelayProxy wire;
    private RedisIdempotenceStorage counted;

    @BeforeEach
    void connect() {
        wire = new DelayProxy(redis.port(), trips);
        counted = EmbeddedRedis.connect(wire.address());
        StorageKey first = Claims.newKey();
        counted.renew(Claims.claim(counted, first), Claims.LEASE);
        counted.resolve(first, 1, Resolution.APPLIED, Claims.RETENTION);
        counted.find(first);
        counted.deleteUnchanged(first, null);
        counted.delete(first);
        begin();
    }

    @AfterEach
    void close() throws IOException {
        counted.close();
        wire.close();
    }

    private void begin() {
        trips.since();
        jedis.configResetStat();
    }

    /** On the wire, and by the scripts that the server was sent: by their names, as no script runs a script. */
    private void assertRoundTrips(int expected, String what) {
        assertThat(trips.since()).as("round trips of %s", what).isEqualTo(expected);
        assertThat(scriptCalls()).as("calls of scripts for %s", what).isEqualTo(expected);
        begin();
    }

    private static long scriptCalls() {
        String stats = jedis.info("commandstats");
        assertThat(stats).doesNotContain("cmdstat_eval:");
        return stats.lines()
                .filter(line -> line.startsWith("cmdstat_evalsha:calls="))
                .mapToLong(line -> Long.parseLong(line.substring(line.indexOf('=') + 1, line.indexOf(','))))
                .sum();
    }

    @Test
    @DisplayName("a first request costs 2 round trips, a replay 1, a duplicate 1")
    void firstReplayAndDuplicate() throws Exception {
        try (Idempotence idempotence = Idempotence.over(counted)) {
            String result = idempotence.execute(id, () -> {
                assertRoundTrips(1, "the claim");
                assertThat(refusalOf(() -> idempotence.execute(id, () -> "never")))
                        .isEqualTo(Refusal.IN_PROGRESS);
                assertRoundTrips(1, "a duplicate");
                return "done";
            });
            assertRoundTrips(1, "the end");
            assertThat(idempotence.execute(id, () -> "never")).isEqualTo(result);
            assertRoundTrips(1, "a replay");
        }
    }

    @Test
    @DisplayName("a request that fails costs 2 round trips, and the one that runs after it 2")
    void failureAndSuccess() throws Exception {
        try (Idempotence idempotence = Idempotence.over(counted)) {
            assertThatThrownBy(() -> idempotence.execute(id, () -> {
                        throw new IOException("no reply");
                    }))
                    .isInstanceOf(IOException.class);
            assertRoundTrips(2, "a failure");
            assertThat(idempotence.execute(id, () -> "done")).isEqualTo("done");
            assertRoundTrips(2, "a success after a failure");
        }
    }

    @Test
    void everyCallOfTheStorageCostsOne() {
        Claim claim = Claims.claim(counted, key);
        assertRoundTrips(1, "a claim");
        assertThat(counted.renew(claim, Duration.ofMillis(1))).isEqualTo(new WriteResult.Done());
        assertRoundTrips(1, "a renewal");
        ServerTime.letPass(redis, Duration.ofMillis(1));
        assertThat(counted.claim(Claims.request(key))).isInstanceOf(ClaimResult.Abandoned.class);
        assertRoundTrips(1, "a claim of what is abandoned");
        ClaimRequest heir =
                new ClaimRequest(key, Fingerprint.NONE, new Owner(1, 1), Claims.LEASE, Claims.RETENTION, true);
        assertThat(counted.claim(heir)).isInstanceOf(ClaimResult.Claimed.class);
        assertRoundTrips(1, "a take-over");
        assertThat(counted.complete(claim, new byte[100], Claims.RETENTION)).isInstanceOf(WriteResult.Fenced.class);
        assertRoundTrips(1, "the end of a late owner");
        Claim second = new Claim(key, Fingerprint.NONE, heir.owner(), 2);
        assertThat(counted.release(second, Claims.RETENTION)).isEqualTo(new WriteResult.Done());
        assertRoundTrips(1, "a release");
        Claim third = Claims.claim(counted, key);
        assertRoundTrips(1, "a claim after a release");
        assertThat(counted.markUnknown(third, Claims.RETENTION)).isEqualTo(new WriteResult.Done());
        assertRoundTrips(1, "an uncertain end");
        assertThat(counted.find(key)).isPresent();
        assertRoundTrips(1, "a look");
        assertThat(counted.deleteUnchanged(key, null)).isFalse();
        assertRoundTrips(1, "a deletion of what cannot be read");
        assertThat(counted.resolve(key, 3, Resolution.APPLIED, Claims.RETENTION))
                .isTrue();
        assertRoundTrips(1, "a resolution");
        assertThat(counted.delete(key)).isTrue();
        assertRoundTrips(1, "a deletion");
    }

    @Test
    void aScriptThatTheServerForgotCostsOneMoreOnce() {
        jedis.scriptFlush();
        Claims.claim(counted, key);
        assertThat(trips.since()).isEqualTo(2);
        counted.claim(Claims.request(key));
        assertThat(trips.since()).isEqualTo(1);
    }

    @Test
    void callsThatWaitForTheSameConnectionShareOneRoundTrip() throws Exception {
        // They fit into one packet, so that it can be counted.
        int callers = 20;
        ExecutorService threads = Executors.newFixedThreadPool(callers + 1);
        ConnectionPoolConfig one = new ConnectionPoolConfig();
        one.setMaxTotal(1);
        one.setMaxWait(Duration.ofSeconds(20));
        try (RedisIdempotenceStorage storage = RedisIdempotenceStorage.builder(wire.address())
                .pool(one)
                .client(DefaultJedisClientConfig.builder()
                        .socketTimeoutMillis(20_000)
                        .build())
                .build()) {
            Claims.claim(storage, Claims.newKey());
            trips.since();
            wire.holdReplies();
            Future<?> first = threads.submit(() -> storage.find(key));
            await().until(() -> trips.soFar() == 1);
            Set<Thread> waiting = ConcurrentHashMap.newKeySet();
            List<Future<ClaimResult>> claims = new ArrayList<>();
            for (int i = 0; i < callers; i++) {
                claims.add(threads.submit(() -> {
                    waiting.add(Thread.currentThread());
                    return storage.claim(Claims.request(Claims.newKey()));
                }));
            }
            await().until(() -> waiting.size() == callers
                    && waiting.stream().allMatch(thread -> thread.getState() == Thread.State.TIMED_WAITING));
            wire.letGo();
            first.get();
            for (Future<ClaimResult> claim : claims) {
                assertThat(claim.get()).isInstanceOf(ClaimResult.Claimed.class);
            }
            assertThat(trips.since()).isEqualTo(2);
        } finally {
            wire.letGo();
            threads.shutdownNow();
        }
    }

    @Test
    void waitingForReplicasCostsNoRoundTripOfItsOwn() throws Exception {
        try (EmbeddedRedis primary = EmbeddedRedis.start();
                EmbeddedRedis replica = EmbeddedRedis.startReplicaOf(primary);
                DelayProxy replicatedWire = new DelayProxy(primary.port(), trips);
                RedisIdempotenceStorage replicated = EmbeddedRedis.builder(replicatedWire.address())
                        .waitForReplicas(1, Duration.ofSeconds(5))
                        .build();
                Jedis copy = replica.jedis()) {
            replicated.complete(Claims.claim(replicated, Claims.newKey()), new byte[1], Claims.RETENTION);
            trips.since();

            Claim claim = Claims.claim(replicated, key);
            assertThat(trips.since()).as("round trips of a claim").isEqualTo(1);
            assertThat(copy.exists(key.value())).isTrue();
            replicated.complete(claim, new byte[100], Claims.RETENTION);
            assertThat(trips.since()).as("round trips of the end").isEqualTo(1);
            replicated.claim(Claims.request(key));
            assertThat(trips.since()).as("round trips of a replay").isEqualTo(1);
        }
    }

    /** Whatever is counted above could otherwise be commands. */
    @Test
    void commandsSentTogetherAreOneRoundTrip() {
        try (Jedis through = new Jedis(
                new HostAndPort(redis.host(), wire.port()),
                EmbeddedRedis.patientClient().build())) {
            through.set("other:1", "a\r\nb");
            trips.since();
            for (int i = 0; i < 3; i++) {
                assertThat(through.mget("other:1", "other:2")).containsExactly("a\r\nb", null);
            }
            assertThat(trips.since()).isEqualTo(3);
            try (Pipeline pipeline = through.pipelined()) {
                for (int i = 0; i < 3; i++) {
                    pipeline.get("other:1");
                }
            }
            assertThat(trips.since()).isEqualTo(1);
            assertThat(through.get("other:1")).isEqualTo("a\r\nb");
            assertThat(trips.since()).isEqualTo(1);
        }
    }
}
