package io.idempotence.server.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.server.storage.AtOnce;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import redis.clients.jedis.Jedis;

/** An application that starts before its Redis does. */
@Tag("redis-7")
@Tag("jedis")
class RedisLazyStartTest {
    private final StorageKey key = Claims.newKey();
    private EmbeddedRedis redis;

    @BeforeEach
    void start() {
        redis = EmbeddedRedis.start();
    }

    @AfterEach
    void stop() {
        redis.close();
    }

    private RedisIdempotenceStorage.Builder builder() {
        return EmbeddedRedis.builder(redis.address());
    }

    private void assertRefused(RedisIdempotenceStorage storage, String why) {
        assertThatThrownBy(() -> storage.claim(Claims.request(key)))
                .isInstanceOfSatisfying(
                        StorageUnavailableException.class,
                        e -> assertThat(e.nothingWritten()).isTrue())
                .hasMessageContaining("Redis at " + redis.address())
                .hasMessageContaining(why);
    }

    private void awaitClaim(RedisIdempotenceStorage storage) {
        await().ignoreExceptionsInstanceOf(StorageUnavailableException.class)
                .until(() -> storage.claim(Claims.request(key)) instanceof ClaimResult.Claimed);
    }

    @Test
    void anEagerStartFailsWhileRedisIsDown() {
        redis.kill();
        assertThatThrownBy(() -> builder().build())
                .isInstanceOf(StorageUnavailableException.class)
                .hasMessageContaining("check that it runs");
        LeftBehind.awaitNoPoolThread();
    }

    @Test
    void aLazyStartSucceedsWhileRedisIsDownAndClaimsAreRefusedUntilItResponds() {
        redis.kill();
        try (RedisIdempotenceStorage storage = builder().lazyStart().build()) {
            assertRefused(storage, "check that it runs");
            assertRefused(storage, "check that it runs");
            redis.restart();
            awaitClaim(storage);
        }
        LeftBehind.awaitNothing(redis);
    }

    @Test
    void aLazyStartChecksWhatAnEagerOneChecksAndRefusesUntilItIsFixed() {
        try (RedisIdempotenceStorage storage = builder().lazyStart().strict().build();
                Jedis jedis = redis.jedis()) {
            assertRefused(storage, "not set up as strict() demands: it keeps no append-only file");
            assertThat(jedis.dbSize()).isZero();
            jedis.configSet("appendonly", "yes");
            awaitClaim(storage);
        }
    }

    @Test
    void aLazyStorageContactsNothingUntilItIsUsed() {
        LeftBehind.awaitNoConnections(redis);
        RedisIdempotenceStorage storage = builder().lazyStart().build();
        assertThat(storage).hasToString("RedisIdempotenceStorage[Redis at " + redis.address() + "]");
        assertThat(LeftBehind.connections(redis)).isZero();
        storage.close();
        storage.close();
        assertRefused(storage, "closed");
        assertThat(LeftBehind.connections(redis)).isZero();
    }

    @Test
    void requestsThatComeTogetherAtTheFirstContactAllSucceed() throws Exception {
        // The first contact of a JVM may take longer than the others wait for it.
        try (RedisIdempotenceStorage other = redis.connect()) {
            Claims.claim(other, Claims.newKey());
        }
        try (RedisIdempotenceStorage storage = builder().lazyStart().build()) {
            assertThat(AtOnce.run(16, () -> storage.claim(Claims.request(Claims.newKey()))))
                    .hasSize(16)
                    .hasOnlyElementsOfType(ClaimResult.Claimed.class);
        }
    }

    /** They were refused after a second. */
    @Test
    void requestsWaitForAFirstContactThatIsSlow() throws Exception {
        Duration patience = Duration.ofSeconds(40);
        ExecutorService threads = Executors.newFixedThreadPool(2);
        try (DelayProxy wire = new DelayProxy(redis.port());
                RedisIdempotenceStorage storage = RedisIdempotenceStorage.builder(wire.address())
                        .timeouts(patience, patience)
                        .lazyStart()
                        .build()) {
            wire.holdReplies();
            long begin = System.nanoTime();
            List<Future<ClaimResult>> claims = Stream.generate(
                            () -> threads.submit(() -> storage.claim(Claims.request(Claims.newKey()))))
                    .limit(2)
                    .toList();
            await().until(() -> wire.connections() == 1);
            // One with the defaults waits for a second, and has given up.
            assertThatThrownBy(RedisIdempotenceStorage.builder(wire.address())::build)
                    .isInstanceOf(StorageUnavailableException.class);
            wire.letGo();
            // Nobody waits for longer than 5 s.
            assumeThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(4));
            for (Future<ClaimResult> claim : claims) {
                assertThat(claim.get(60, TimeUnit.SECONDS)).isInstanceOf(ClaimResult.Claimed.class);
            }
        } finally {
            threads.shutdownNow();
        }
    }

    @Test
    void anInterruptAtTheFirstContactIsOfItsThreadOnly() {
        try (RedisIdempotenceStorage storage = builder().lazyStart().build()) {
            Thread.currentThread().interrupt();
            try {
                storage.claim(Claims.request(Claims.newKey()));
            } catch (StorageUnavailableException e) {
                assertThat(e.nothingWritten()).isTrue();
            }
            assertThat(Thread.interrupted()).isTrue();

            assertThat(storage.claim(Claims.request(key))).isInstanceOf(ClaimResult.Claimed.class);
            assertThat(Thread.currentThread().isInterrupted()).isFalse();
        }
    }

    /** An interrupt closes the connection that a virtual thread opens. */
    @Test
    @EnabledForJreRange(min = JRE.JAVA_21)
    void anInterruptOfAVirtualThreadThatConnectsIsOfThatThreadOnly() throws Exception {
        // By reflection, as tests are compiled for 17.
        ExecutorService threads = (ExecutorService)
                Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        AtomicReference<Thread> first = new AtomicReference<>();
        try (DelayProxy wire = new DelayProxy(redis.port());
                RedisIdempotenceStorage storage =
                        EmbeddedRedis.builder(wire.address()).lazyStart().build()) {
            wire.holdReplies();
            Future<?> refused = threads.submit(() -> {
                first.set(Thread.currentThread());
                assertThatThrownBy(() -> storage.claim(Claims.request(Claims.newKey())))
                        .isInstanceOf(StorageUnavailableException.class);
                assertThat(Thread.currentThread().isInterrupted()).isTrue();
            });
            await().until(() -> wire.connections() > 0);
            first.get().interrupt();
            refused.get();
            wire.letGo();

            assertThat(storage.claim(Claims.request(key))).isInstanceOf(ClaimResult.Claimed.class);
        } finally {
            threads.shutdownNow();
        }
    }

    /** The port is taken by something that accepts and never responds. */
    @Test
    void aSilentServerAtTheFirstContactHoldsRequestsForOneCheckOnly() throws IOException {
        try (DelayProxy wire = new DelayProxy(redis.port())) {
            wire.holdReplies();
            try (RedisIdempotenceStorage storage =
                    RedisIdempotenceStorage.builder(wire.address()).lazyStart().build()) {
                // On a busy machine, the second call may come when the failure of the first one no longer counts.
                await().until(() -> {
                    assertThatThrownBy(() -> storage.claim(Claims.request(key)))
                            .isInstanceOf(StorageUnavailableException.class);
                    int opened = wire.connections();
                    assertThatThrownBy(() -> storage.claim(Claims.request(key)))
                            .isInstanceOf(StorageUnavailableException.class);
                    return wire.connections() == opened;
                });
                wire.letGo();
                awaitClaim(storage);
            }
        }
    }
}
