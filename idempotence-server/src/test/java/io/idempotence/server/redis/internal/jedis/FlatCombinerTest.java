package io.idempotence.server.redis.internal.jedis;

import static io.idempotence.server.redis.internal.jedis.QueuedCalls.LONG;
import static io.idempotence.server.redis.internal.jedis.QueuedCalls.find;
import static io.idempotence.server.redis.internal.jedis.QueuedCalls.told;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.server.redis.internal.Redis.NothingWrittenException;
import io.idempotence.server.redis.internal.jedis.QueuedCalls.Call;
import io.idempotence.server.redis.internal.jedis.QueuedCalls.Threads;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import redis.clients.jedis.exceptions.JedisConnectionException;

/** Callers whose calls are sent together. */
@Tag("jedis")
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class FlatCombinerTest {
    private QueuedCalls calls = new QueuedCalls(1);

    @AfterEach
    void close() throws Exception {
        calls.close();
    }

    @Test
    void aBatchThatHangsHoldsUpNobodyElse() throws Exception {
        calls.close();
        calls = new QueuedCalls(4);
        Call<String> first = calls.holdUp();
        calls.hold("second");
        Call<String> second = calls.start("second");
        calls.arrived("second");
        assertThat(calls.start("third").get()).isEqualTo("third");
        assertThat(first.result()).isNotDone();
        assertThat(second.result()).isNotDone();
    }

    @Test
    void aBatchThatHangsDelaysOnlyTheFirstCallAfterIt() throws Exception {
        calls.close();
        calls = new QueuedCalls(4);
        AtomicLong now = new AtomicLong();
        FlatCombiner combiner = new FlatCombiner(
                calls.connections()::getConnection,
                new RoundTripSender(LONG, null, new LargeRoundTrips(), () -> {}),
                4,
                LONG,
                now::get);
        Call<List<Object>> first = calls.holdUp(() -> combiner.ask(List.of(find("first"))));
        Call<List<Object>> second = calls.queued(() -> combiner.ask(List.of(find("second"))));
        now.addAndGet(TimeUnit.MILLISECONDS.toNanos(10));
        assertThat(second.get()).hasSize(1);
        // The clock stands still from here on, so a call that waited would wait for ever.
        for (int i = 0; i < 100; i++) {
            assertThat(combiner.ask(List.of(find("later")))).hasSize(1);
        }
        assertThat(first.result()).isNotDone();
    }

    @Test
    void aCallerThatWaitsAtTheLimitOfConnectionsGetsTheOneThatIsFreeFirst() throws Exception {
        calls.close();
        calls = new QueuedCalls(2);
        for (int i = 0; i < 200; i++) {
            // The server is near, so that distance is no reason for a batch.
            calls.start("earlier-" + i).get();
        }
        Call<String> first = calls.holdUp();
        calls.hold("second");
        calls.start("second");
        calls.arrived("second");
        Call<String> third = calls.queued("third");
        // It has found that no batch ends, and waits for a free connection.
        long queued = System.nanoTime();
        QueuedCalls.until(() -> System.nanoTime() - queued > TimeUnit.MILLISECONDS.toNanos(50) && third.isWaiting());
        calls.letGo("second");
        QueuedCalls.until(third.result()::isDone);
        assertThat(third.get()).isEqualTo("third");
        assertThat(first.result()).isNotDone();
    }

    @ParameterizedTest
    @CsvSource({"63, 0, 1", "100, 0, 2", "63, 1024, 3", "1, 100000, 1"})
    void aBatchIsBoundedByItsCallsAndTheirBytes(int callers, int bytes, int batches) throws Exception {
        AtomicInteger lent = new AtomicInteger();
        FlatCombiner combiner = new FlatCombiner(
                () -> {
                    lent.incrementAndGet();
                    return calls.connections().getConnection();
                },
                new RoundTripSender(LONG, null, new LargeRoundTrips(), () -> {}),
                1,
                LONG);
        calls.holdUp(() -> combiner.ask(List.of(find("first"))));
        List<Call<?>> others = new ArrayList<>();
        for (int i = 0; i < callers; i++) {
            RedisCall call = RedisCall.evalsha(QueuedCalls.SCRIPT, RedisCall.bytes("key-" + i), new byte[bytes]);
            others.add(calls.start(() -> combiner.ask(List.of(call))));
        }
        QueuedCalls.until(() -> others.stream().allMatch(Call::isWaiting));
        calls.sendQueued();
        for (Call<?> each : others) {
            each.get();
        }
        assertThat(calls.server.received()).hasSize(1 + callers);
        assertThat(lent).hasValue(1 + batches);
    }

    private void callFrom(Threads threads) throws Exception {
        calls.close();
        calls = new QueuedCalls(1, null, threads);
    }

    /** What a call ended with, and whether its thread was interrupted then. */
    private record End(String reply, boolean isInterrupted) {
        static End of(Callable<String> call) {
            String reply;
            try {
                reply = call.call();
            } catch (NothingWrittenException e) {
                reply = "not sent";
            } catch (Exception e) {
                reply = "in doubt";
            }
            return new End(reply, Thread.currentThread().isInterrupted());
        }
    }

    private Call<End> queued(String key) {
        return calls.queued(() -> End.of(() -> told(calls.redis().run(QueuedCalls.SCRIPT, RedisCall.bytes(key)))));
    }

    @ParameterizedTest
    @EnumSource
    void anInterruptedCallerStillGetsTheReplyToACallThatWasSentWithOthers(Threads threads) throws Exception {
        callFrom(threads);
        calls.holdUp();
        calls.hold("second");
        Call<End> second = queued("second");
        Call<End> third = queued("third");
        calls.sendQueued();
        calls.arrived("second");
        third.thread().interrupt();
        calls.letGo("second");
        assertThat(second.get()).isEqualTo(new End("second", false));
        assertThat(third.get()).isEqualTo(new End("third", true));
        assertThat(calls.count("third")).isEqualTo(1);
        assertThat(calls.start("later").get()).isEqualTo("later");
    }

    @ParameterizedTest
    @EnumSource
    void anInterruptedCallerThatWaitsForItsTurnSendsNothing(Threads threads) throws Exception {
        callFrom(threads);
        Call<String> first = calls.holdUp();
        Call<End> second = queued("second");
        Call<End> third = queued("third");
        second.thread().interrupt();
        assertThat(second.get()).isEqualTo(new End("not sent", true));
        calls.sendQueued();
        assertThat(first.get()).isEqualTo("first");
        assertThat(third.get()).isEqualTo(new End("third", false));
        assertThat(calls.count("second")).isZero();
    }

    /** An interrupt closes the connection of a virtual thread, and leaves that of another thread alone. */
    @ParameterizedTest
    @EnumSource
    void anInterruptOfTheThreadThatSendsFailsNobodyElsesCall(Threads threads) throws Exception {
        callFrom(threads);
        calls.holdUp();
        calls.hold("second");
        Call<End> second = queued("second");
        Call<End> third = queued("third");
        Call<End> fourth = queued("fourth");
        calls.sendQueued();
        calls.arrived("second");
        second.thread().interrupt();
        if (threads == Threads.PLATFORM) {
            calls.letGo("second");
        }
        assertThat(second.get()).isEqualTo(new End(threads == Threads.PLATFORM ? "second" : "in doubt", true));
        assertThat(third.get()).isEqualTo(new End("third", false));
        assertThat(fourth.get()).isEqualTo(new End("fourth", false));
        assertThat(calls.start("later").get()).isEqualTo("later");
    }

    @ParameterizedTest
    @EnumSource
    void aCallerThatIsInterruptedAlreadyTakesNobodysPlace(Threads threads) throws Exception {
        callFrom(threads);
        for (int i = 0; i < 5; i++) {
            String key = "interrupted-" + i;
            End end = calls.start(() -> {
                        Thread.currentThread().interrupt();
                        return End.of(() -> told(calls.redis().run(QueuedCalls.SCRIPT, RedisCall.bytes(key))));
                    })
                    .get();
            assertThat(end.reply()).isIn(key, "in doubt", "not sent");
            assertThat(end.isInterrupted()).isTrue();
            assertThat(calls.start("later-" + i).get()).isEqualTo("later-" + i);
        }
    }

    /** Otherwise one broken connection would count as many failures, and open the circuit breaker. */
    @Test
    void aConnectionThatBreaksFailsOnlyTheCallThatWasSentFirst() throws Exception {
        calls.willReply("second", QueuedCalls.CLOSED);
        Call<String> first = calls.holdUp();
        Call<String> second = calls.queued("second");
        Call<String> third = calls.queued("third");
        Call<String> fourth = calls.queued("fourth");
        calls.sendQueued();
        assertThat(first.get()).isEqualTo("first");
        assertThat(second.failure()).isInstanceOf(JedisConnectionException.class);
        assertThat(third.get()).isEqualTo("third");
        assertThat(fourth.get()).isEqualTo("fourth");
        assertThat(calls.count("second")).isEqualTo(1);
    }

    /** As an error of the JVM deep in a stack may do, wherever it happens. */
    @Test
    void aCallerThatEndsWithAnErrorLeavesItsPlaceToOthers() {
        AtomicBoolean fails = new AtomicBoolean(true);
        FlatCombiner combiner = new FlatCombiner(
                () -> {
                    if (fails.getAndSet(false)) {
                        throw new StackOverflowError();
                    }
                    return calls.connections().getConnection();
                },
                new RoundTripSender(LONG, null, new LargeRoundTrips(), () -> {}),
                1,
                LONG);
        assertThatThrownBy(() -> combiner.ask(List.of(find("third")))).isInstanceOf(StackOverflowError.class);
        assertThat(combiner.ask(List.of(find("third")))).hasSize(1);
    }

    @Test
    void aCallThatWaitsWhenTheStorageIsClosedEndsWithItsLeader() throws Exception {
        Call<String> first = calls.holdUp();
        Call<String> third = calls.queued("third");
        calls.redis().close();
        calls.sendQueued();
        assertThat(first.get()).isEqualTo("first");
        assertThat(third.failure()).hasMessageContaining("the storage is closed");
        assertThat(calls.count("third")).isZero();
    }
}
