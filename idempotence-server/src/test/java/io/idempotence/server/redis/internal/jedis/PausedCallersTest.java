package io.idempotence.server.redis.internal.jedis;

import static io.idempotence.server.redis.internal.jedis.QueuedCalls.find;
import static io.idempotence.server.redis.internal.jedis.QueuedCalls.told;
import static io.idempotence.server.redis.internal.jedis.QueuedCalls.until;
import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.redis.internal.jedis.QueuedCalls.Call;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Callers that wake up after a pause of their process, in which their time limits have passed. */
@Tag("jedis")
class PausedCallersTest {
    private final QueuedCalls calls = new QueuedCalls(1);
    private final Set<Thread> awake = ConcurrentHashMap.newKeySet();
    private volatile long pausedNanos;

    private final FlatCombiner combiner = new FlatCombiner(
            calls.connections()::getConnection,
            new RoundTripSender(QueuedCalls.LONG, null, new LargeRoundTrips(), () -> {}),
            1,
            QueuedCalls.LONG,
            this::now);

    private final Call<String> first = calls.holdUp(() -> ask("first"));
    private final Call<String> second = calls.queued(() -> ask("second"));
    private final Call<String> third = calls.queued(() -> ask("third"));

    @AfterEach
    void close() throws IOException, InterruptedException {
        calls.close();
    }

    private long now() {
        awake.add(Thread.currentThread());
        return System.nanoTime() + pausedNanos;
    }

    private String ask(String key) {
        return told(combiner.ask(List.of(find(key))).get(0));
    }

    /** Returns when these callers have given up, or wait again. */
    @SafeVarargs
    private void pauseBefore(Call<String>... waiting) {
        pausedNanos += Duration.ofDays(1).toNanos();
        awake.clear();
        for (Call<String> each : waiting) {
            LockSupport.unpark(each.thread());
            until(() -> each.result().isDone() || (awake.contains(each.thread()) && each.isWaiting()));
        }
    }

    @Test
    @DisplayName("a pause is no wait for a connection")
    void callersInTheQueueWaitAnew() throws Exception {
        pauseBefore(second, third);
        calls.sendQueued();
        assertThat(List.of(first.get(), second.get(), third.get())).containsExactly("first", "second", "third");
    }

    @Test
    @DisplayName("a pause is no wait for the replies to a batch")
    void callersInABatchWaitAnew() throws Exception {
        calls.hold("second");
        calls.sendQueued();
        calls.arrived("second");
        pauseBefore(third);
        calls.letGo("second");
        assertThat(List.of(first.get(), second.get(), third.get())).containsExactly("first", "second", "third");
    }

    @Test
    @DisplayName("a process that is paused again and again lets nobody wait for ever")
    void callersWaitAnewOnce() throws Exception {
        pauseBefore(second, third);
        pauseBefore(second, third);
        assertThat(second.failure()).hasMessageContaining("no connection was free");
        assertThat(third.failure()).hasMessageContaining("no connection was free");
        calls.sendQueued();
        assertThat(first.get()).isEqualTo("first");
    }
}
