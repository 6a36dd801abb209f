package io.idempotence.server.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.IdempotenceListener;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.HostAndPort;

/** A connection breaks after Redis has executed a command and before its reply arrives, and others act in between. */
@Tag("redis-7")
@Tag("jedis")
class RedisLostReplyTest {
    private static final Runnable NOTHING = () -> {};

    private static EmbeddedRedisCluster cluster;

    private final AtomicReference<Runnable> atLoss = new AtomicReference<>();
    private final AtomicInteger lost = new AtomicInteger();
    private final List<IdempotenceEvent> events = new CopyOnWriteArrayList<>();
    private final IdempotenceId id = IdempotenceId.of(UUID.randomUUID().toString());
    private Map<Integer, DelayProxy> wires;
    private RedisIdempotenceStorage storage;
    private RedisIdempotenceStorage elsewhere;

    @BeforeAll
    static void startCluster() {
        cluster = EmbeddedRedisCluster.start();
    }

    @AfterAll
    static void stopCluster() {
        cluster.close();
    }

    @BeforeEach
    void connect() {
        wires = cluster.nodes().stream()
                .map(EmbeddedRedis::port)
                .collect(Collectors.toMap(Function.identity(), port -> new DelayProxy(port, this::tap)));
        storage = EmbeddedRedis.builder(cluster.addresses())
                .client(EmbeddedRedis.patientClient()
                        .hostAndPortMapper(node -> new HostAndPort(
                                "127.0.0.1", wires.get(node.getPort()).port()))
                        .build())
                .build();
        elsewhere = EmbeddedRedis.connect(cluster.addresses());
    }

    @AfterEach
    void disconnect() throws IOException {
        storage.close();
        elsewhere.close();
        for (DelayProxy wire : wires.values()) {
            wire.close();
        }
    }

    /** Closes the connection whose reply is to be lost, after others have acted. */
    private DelayProxy.Tap tap() {
        return (requests, bytes, length) -> {
            Runnable others = requests ? null : atLoss.getAndSet(null);
            if (others != null) {
                lost.incrementAndGet();
                others.run();
                throw new IOException("the reply is lost");
            }
        };
    }

    private StorageUnavailableException inDoubt(Runnable call) {
        StorageUnavailableException failure = catchThrowableOfType(StorageUnavailableException.class, call::run);
        assertThat(failure).isNotNull();
        assertThat(failure.nothingWritten()).isFalse();
        assertThat(lost).hasValue(1);
        return failure;
    }

    // ---- operators

    private StorageKey keyWhoseServerHasTheOperatorsScripts() {
        StorageKey key = Claims.newKey();
        elsewhere.delete(key);
        elsewhere.deleteUnchanged(key, null);
        elsewhere.resolve(key, 1, Resolution.APPLIED, Claims.RETENTION);
        return key;
    }

    @Test
    void aDeleteWhoseReplyWasLostDoesNotDeleteTheClaimThatFollowed() {
        StorageKey key = keyWhoseServerHasTheOperatorsScripts();
        Claims.claim(storage, key);

        atLoss.set(() -> Claims.claim(elsewhere, key));
        inDoubt(() -> storage.delete(key));

        assertThat(elsewhere.find(key)).isPresent();
    }

    @Test
    void aResolutionWhoseReplyWasLostIsNotReportedAsNothingDone() {
        StorageKey key = keyWhoseServerHasTheOperatorsScripts();
        storage.markUnknown(Claims.claim(storage, key), Claims.RETENTION);

        atLoss.set(NOTHING);
        inDoubt(() -> storage.resolve(key, 1, Resolution.APPLIED, Claims.RETENTION));

        assertThat(elsewhere.find(key).orElseThrow().state()).isEqualTo(State.COMPLETED);
    }

    @Test
    void anOperatorWhoseReplyWasLostIsToldToLookTheRecordUpAgain() {
        StorageKey key = keyWhoseServerHasTheOperatorsScripts();
        IdempotenceAdmin admin = IdempotenceAdmin.of(storage, "payments");
        storage.markUnknown(Claims.claim(storage, key), Claims.RETENTION);
        IdempotenceRecord seen = admin.find(key).orElseThrow();

        atLoss.set(NOTHING);
        assertThat(inDoubt(() -> admin.resolve(seen, Resolution.NOT_APPLIED)))
                .hasMessageContaining("result is unknown")
                .hasMessageContaining("look the record up again");
        IdempotenceRecord released = admin.find(key).orElseThrow();
        lost.set(0);
        atLoss.set(NOTHING);
        assertThat(inDoubt(() -> admin.delete(released))).hasMessageContaining("look the record up again");
    }

    // ---- owners

    private Idempotence idempotence(RedisIdempotenceStorage over, IdempotenceListener listener) {
        return Idempotence.builder(over).listener(listener).build();
    }

    private void giveTheServerTheScriptsOfOwners() {
        StorageKey key = IdempotenceAdmin.of(elsewhere, "default").executeKey(id);
        elsewhere.release(Claims.claim(elsewhere, key), Claims.RETENTION);
        elsewhere.delete(key);
    }

    @Test
    void aReleaseWhoseReplyWasLostIsNoAlarmWhileTheNextAttemptRuns() throws Exception {
        giveTheServerTheScriptsOfOwners();
        CountDownLatch runs = new CountDownLatch(1);
        CountDownLatch end = new CountDownLatch(1);
        try (Idempotence own = idempotence(storage, (event, which) -> events.add(event));
                Idempotence other = idempotence(elsewhere, (event, which) -> {})) {
            FutureTask<String> next = new FutureTask<>(() -> other.execute(id, () -> {
                runs.countDown();
                end.await();
                return "paid";
            }));
            assertThatThrownBy(() -> own.execute(id, () -> {
                        atLoss.set(() -> {
                            new Thread(next, "next-attempt").start();
                            awaitUninterruptibly(runs);
                        });
                        throw new IllegalStateException("the card service is down");
                    }))
                    .hasMessage("the card service is down");
            await().until(() -> events.contains(IdempotenceEvent.RELEASED));
            end.countDown();
            assertThat(next.get()).isEqualTo("paid");
        }
        assertReleased();
    }

    @Test
    void aReleaseWhoseReplyWasLostIsNoAlarmAfterTheNextAttempt() throws Exception {
        giveTheServerTheScriptsOfOwners();
        try (Idempotence own = idempotence(storage, (event, which) -> events.add(event));
                Idempotence other = idempotence(elsewhere, (event, which) -> {})) {
            assertThatThrownBy(() -> own.execute(id, () -> {
                        atLoss.set(() -> assertThatCode(() -> other.execute(id, () -> "paid"))
                                .doesNotThrowAnyException());
                        throw new IllegalStateException("the card service is down");
                    }))
                    .hasMessage("the card service is down");
            assertThat(own.execute(id, () -> "paid twice")).isEqualTo("paid");
        }
        assertReleased();
    }

    /** Closing has written what was left to write. */
    private void assertReleased() {
        assertThat(lost).hasValue(1);
        assertThat(events)
                .contains(IdempotenceEvent.CLAIMED, IdempotenceEvent.STORAGE_ERROR, IdempotenceEvent.RELEASED)
                .doesNotContain(IdempotenceEvent.FENCED, IdempotenceEvent.LOST);
    }

    private static void awaitUninterruptibly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
