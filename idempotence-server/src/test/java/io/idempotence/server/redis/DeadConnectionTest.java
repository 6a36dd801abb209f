package io.idempotence.server.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceListener;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;

/** A connection that dies with the calls of many requests on it, while its server lives. */
@Tag("jedis")
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class DeadConnectionTest {
    private static final int CALLERS = 24;

    private final EmbeddedRedis redis = EmbeddedRedis.start();
    private final CountDownLatch end = new CountDownLatch(1);
    private final AtomicBoolean hasDied = new AtomicBoolean();
    private final DelayProxy wire = new DelayProxy(redis.port(), this::tap);
    private final List<Thread> threads = new ArrayList<>();

    @AfterEach
    void stop() throws Exception {
        end.countDown();
        wire.close();
        for (Thread thread : threads) {
            thread.join();
        }
        redis.close();
    }

    /** The first connection with a batch of many gets no response any more. */
    private DelayProxy.Tap tap() {
        AtomicBoolean isDead = new AtomicBoolean();
        return (requests, bytes, length) -> {
            if (requests && calls(bytes, length) >= CALLERS / 2 && hasDied.compareAndSet(false, true)) {
                isDead.set(true);
            }
            if (!requests && isDead.get()) {
                awaitEnd();
            }
        };
    }

    private static int calls(byte[] bytes, int length) {
        return new String(bytes, 0, length, StandardCharsets.ISO_8859_1).split("EVALSHA", -1).length - 1;
    }

    private void awaitEnd() {
        try {
            end.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private FutureTask<String> start(Callable<String> call) {
        FutureTask<String> result = new FutureTask<>(call);
        Thread thread = new Thread(result);
        threads.add(thread);
        thread.start();
        return result;
    }

    @Test
    void manyCallsThatShareADeadConnectionAreNoOutage() throws Exception {
        StorageStates states = new StorageStates();
        ConnectionPoolConfig one = new ConnectionPoolConfig();
        one.setMaxTotal(1);
        // Its default is half a second, and all callers must wait at once.
        one.setMaxWait(Duration.ofMinutes(1));
        RedisIdempotenceStorage storage = RedisIdempotenceStorage.builder(wire.address())
                .pool(one)
                .client(DefaultJedisClientConfig.builder()
                        .socketTimeoutMillis(5_000)
                        .build())
                .build();
        try (Idempotence idempotence =
                Idempotence.builder(storage).listener(states).build()) {
            assertThat(idempotence.execute(IdempotenceId.of("order-0"), () -> "paid"))
                    .isEqualTo("paid");
            wire.holdRequests();
            List<FutureTask<String>> calls = new ArrayList<>();
            for (int i = 1; i <= CALLERS; i++) {
                IdempotenceId id = IdempotenceId.of("order-" + i);
                calls.add(start(() -> idempotence.execute(id, () -> "paid")));
            }
            await("one waits for the server, the others for the connection").until(() -> {
                for (FutureTask<String> call : calls) {
                    // One that has ended has failed: no request gets through.
                    assertThat(call.isDone() ? call.get() : null).isNull();
                }
                return threads.stream().filter(DeadConnectionTest::isParked).count() >= CALLERS - 1;
            });
            wire.letGo();
            for (FutureTask<String> call : calls) {
                assertThat(call.get()).isEqualTo("paid");
            }
        }
        assertThat(hasDied).isTrue();
        assertThat(states.reported()).doesNotContain(IdempotenceListener.StorageState.UNAVAILABLE);
    }

    private static boolean isParked(Thread thread) {
        return thread.getState() == Thread.State.TIMED_WAITING;
    }
}
