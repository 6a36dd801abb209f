package io.idempotence.server;

import static io.idempotence.server.storage.FaultyStorage.hang;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.internal.DaemonThreads;
import io.idempotence.internal.SharedFailure;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests of when a storage counts as down, and which of its callers are kept out then. */
class StorageGuardTest {
    private static final ThreadFactory PROBES = DaemonThreads.named("idempotence-probes");
    private final ExecutorService callers = Executors.newCachedThreadPool();

    @AfterEach
    void stop() {
        callers.shutdownNow();
    }

    /** A guard for which a call is slow from one second on. */
    private static StorageGuard guardAt(AtomicLong now) {
        return new StorageGuard(
                new Events(null), () -> {}, StorageGuard.breaker(Duration.ofSeconds(1)), now::get, PROBES);
    }

    /** Calls that wait for the storage, all at once. */
    private List<Future<String>> crowd(StorageGuard guard, int size, CountDownLatch goOn) throws InterruptedException {
        CountDownLatch arrived = new CountDownLatch(size);
        List<Future<String>> calls = new ArrayList<>();
        for (int i = 0; i < size; i++) {
            calls.add(callers.submit(() -> guard.call(() -> {
                arrived.countDown();
                hang(goOn);
                return "responded";
            })));
        }
        arrived.await();
        return calls;
    }

    @Test
    @DisplayName("a crowd is no outage: only callers that have waited for long keep others out")
    void aCrowdIsNotRefused() throws Exception {
        AtomicLong now = new AtomicLong();
        CountDownLatch goOn = new CountDownLatch(1);
        try (StorageGuard guard = guardAt(now)) {
            List<Future<String>> calls = crowd(guard, 2 * StorageGuard.MOST_SLOW_CALLS, goOn);
            assertThat(guard.call(() -> "one more")).isEqualTo("one more");
            waitLongerThanACallerMay(now, guard);
            assertThatThrownBy(() -> guard.call(() -> "too many"))
                    .isInstanceOfSatisfying(
                            StorageUnavailableException.class,
                            e -> assertThat(e.nothingWritten()).isTrue());
            goOn.countDown();
            for (Future<String> call : calls) {
                assertThat(call.get()).isEqualTo("responded");
            }
            assertThat(guard.call(() -> "back")).isEqualTo("back");
        } finally {
            goOn.countDown();
        }
    }

    /** Time passes without a pause: calls begin all the time. */
    private static void waitLongerThanACallerMay(AtomicLong now, StorageGuard guard) {
        for (int i = 0; i < 25; i++) {
            now.addAndGet(Duration.ofMillis(10).toNanos());
            guard.call(() -> "fast");
        }
        now.addAndGet(Duration.ofMillis(10).toNanos());
    }

    @Test
    @DisplayName("callers that a pause of this process has delayed keep nobody out after it")
    void aPauseIsNoWaitForTheStorage() throws Exception {
        AtomicLong now = new AtomicLong();
        CountDownLatch goOn = new CountDownLatch(1);
        try (StorageGuard guard = guardAt(now)) {
            crowd(guard, StorageGuard.MOST_SLOW_CALLS, goOn);
            now.addAndGet(Duration.ofSeconds(30).toNanos());
            assertThat(guard.call(() -> "one more")).isEqualTo("one more");
        } finally {
            goOn.countDown();
        }
    }

    @Test
    @DisplayName("each slow caller that the storage responds to makes room for another")
    void aSlowCallerThatReturnsMakesRoom() throws Exception {
        AtomicLong now = new AtomicLong();
        CountDownLatch arrived = new CountDownLatch(StorageGuard.MOST_SLOW_CALLS);
        CountDownLatch one = new CountDownLatch(1);
        CountDownLatch others = new CountDownLatch(1);
        List<Future<String>> calls = new ArrayList<>();
        try (StorageGuard guard = guardAt(now)) {
            for (int i = 0; i < StorageGuard.MOST_SLOW_CALLS; i++) {
                CountDownLatch goOn = i == StorageGuard.MOST_SLOW_CALLS / 2 ? one : others;
                calls.add(callers.submit(() -> guard.call(() -> {
                    arrived.countDown();
                    hang(goOn);
                    return "responded";
                })));
            }
            arrived.await();
            waitLongerThanACallerMay(now, guard);
            assertThatThrownBy(() -> guard.call(() -> "too many")).isInstanceOf(StorageUnavailableException.class);
            one.countDown();
            assertThat(calls.get(StorageGuard.MOST_SLOW_CALLS / 2).get()).isEqualTo("responded");
            assertThat(guard.call(() -> "one more")).isEqualTo("one more");
            assertThat(guard.call(() -> "and one more")).isEqualTo("and one more");
        } finally {
            one.countDown();
            others.countDown();
        }
    }

    @Test
    @DisplayName("a process that could start no thread probes the storage when it can")
    void probesBeginWhenThreadsCanBeStartedAgain() {
        ThreadLimit limit = new ThreadLimit();
        limit.reached();
        ThreadFactory threads = limit.apply("idempotence-probes");
        try (StorageGuard guard = new StorageGuard(
                new Events(null), () -> {}, StorageGuard.breaker(Duration.ofSeconds(1)), System::nanoTime, threads)) {
            for (int i = 0; i < 10; i++) {
                assertThatThrownBy(() -> guard.call(() -> {
                            throw new StorageUnavailableException("down", null);
                        }))
                        .isInstanceOf(StorageUnavailableException.class)
                        .hasMessage("down");
            }
            assertThatThrownBy(() -> guard.call(() -> "refused")).isInstanceOf(StorageUnavailableException.class);
            assertThat(guard.isOpen()).isTrue();
            limit.lifted();
            assertThatThrownBy(() -> guard.call(() -> "refused")).isInstanceOf(StorageUnavailableException.class);
            await().until(() -> !guard.isOpen());
            assertThat(guard.call(() -> "again")).isEqualTo("again");
        }
    }

    private static final class BrokenConnection extends RuntimeException implements SharedFailure {
        private static final long serialVersionUID = 1L;

        private final transient Set<Object> observers = ConcurrentHashMap.newKeySet();

        @Override
        public boolean countsFor(Object observer) {
            return observers.add(observer);
        }
    }

    @Test
    @DisplayName("a connection that fails under many calls counts once, and each further one counts")
    void aFailureThatCallsShareCountsOnce() {
        Runnable probe = () -> {
            throw new StorageUnavailableException("still down", null);
        };
        try (StorageGuard guard = new StorageGuard(new Events(null), probe, Duration.ofSeconds(1))) {
            for (int connection = 0; connection < 10; connection++) {
                assertThat(guard.isOpen()).isFalse();
                BrokenConnection broken = new BrokenConnection();
                for (int i = 0; i < 30; i++) {
                    assertThatThrownBy(() -> guard.call(() -> {
                                throw new StorageUnavailableException("no response", new RuntimeException(broken));
                            }))
                            .hasMessageContaining("no response");
                    if (guard.isOpen()) {
                        break;
                    }
                }
            }
            assertThat(guard.isOpen()).isTrue();
        }
    }

    @Test
    @DisplayName("calls that take as long as their storage may take open nothing")
    void callsAsSlowAsTheirStorageMayBeOpenNothing() {
        AtomicLong now = new AtomicLong();
        for (Duration slowCall : List.of(Duration.ofSeconds(6), Duration.ofSeconds(1))) {
            try (StorageGuard guard =
                    new StorageGuard(new Events(null), () -> {}, StorageGuard.breaker(slowCall), now::get, PROBES)) {
                for (int i = 0; i < 10; i++) {
                    guard.call(() -> now.addAndGet(Duration.ofSeconds(5).toNanos()));
                }
                assertThat(guard.isOpen()).isEqualTo(slowCall.toSeconds() < 5);
            }
        }
    }

    private static String together(int calls, StorageGuard guard, Runnable whileTheyWait) {
        if (calls == 0) {
            whileTheyWait.run();
            return "responded";
        }
        return guard.call(() -> together(calls - 1, guard, whileTheyWait));
    }

    @ParameterizedTest(name = "{0} slow for each fast call")
    @CsvSource({"9, true", "2, false"})
    @DisplayName("a storage that is slow again and again counts as down although some calls are fast")
    void slowCallsOutweighFewFastOnes(int slow, boolean isDown) {
        AtomicLong now = new AtomicLong();
        try (StorageGuard guard = guardAt(now)) {
            for (int i = 0; i < 100 && !guard.isOpen(); i++) {
                guard.call(() -> "fast");
                together(slow, guard, () -> now.addAndGet(Duration.ofSeconds(2).toNanos()));
            }
            assertThat(guard.isOpen()).isEqualTo(isDown);
        }
    }

    @Test
    @DisplayName("calls that one pause delays, of this process or of the storage, open nothing")
    void onePauseOpensNothing() {
        AtomicLong now = new AtomicLong();
        try (StorageGuard guard = guardAt(now)) {
            together(30, guard, () -> now.addAndGet(Duration.ofSeconds(2).toNanos()));
            assertThat(guard.isOpen()).isFalse();
        }
    }

    @Test
    @DisplayName("a few failures after a pause with many calls open nothing")
    void aFewFailuresAfterAPauseOpenNothing() {
        AtomicLong now = new AtomicLong();
        try (StorageGuard guard = guardAt(now)) {
            together(500, guard, () -> now.addAndGet(Duration.ofSeconds(2).toNanos()));
            for (int i = 0; i < 500; i++) {
                if (i % 10 == 0) {
                    assertThatThrownBy(() -> guard.call(() -> {
                                throw new StorageUnavailableException("down", null);
                            }))
                            .hasMessage("down");
                } else {
                    guard.call(() -> "fast");
                }
                assertThat(guard.isOpen()).isFalse();
            }
        }
    }

    @Test
    @DisplayName("calls that began before an outage let no more trials through when they fail after it")
    void callsFromBeforeTheOutageAddNoTrials() throws Exception {
        int earlier = 30;
        CountDownLatch arrived = new CountDownLatch(earlier);
        CountDownLatch fail = new CountDownLatch(1);
        CountDownLatch trialsEnd = new CountDownLatch(1);
        BrokenConnection broken = new BrokenConnection();
        AtomicBoolean isBack = new AtomicBoolean();
        Runnable probe = () -> {
            if (!isBack.get()) {
                throw new StorageUnavailableException("still down", null);
            }
        };
        try (StorageGuard guard = new StorageGuard(new Events(null), probe, Duration.ofMinutes(1))) {
            List<Future<?>> calls = new ArrayList<>();
            for (int i = 0; i < earlier; i++) {
                calls.add(callers.submit(() -> guard.call(() -> {
                    arrived.countDown();
                    hang(fail);
                    throw new StorageUnavailableException("no response", new RuntimeException(broken));
                })));
            }
            arrived.await();
            for (int i = 0; i < 20 && !guard.isOpen(); i++) {
                assertThatThrownBy(() -> guard.call(() -> {
                            throw new StorageUnavailableException("down", null);
                        }))
                        .isInstanceOf(StorageUnavailableException.class);
            }
            assertThat(guard.isOpen()).isTrue();
            isBack.set(true);
            await().until(() -> !guard.isOpen());
            fail.countDown();
            for (Future<?> call : calls) {
                assertThatThrownBy(call::get).hasCauseInstanceOf(StorageUnavailableException.class);
            }

            AtomicInteger trials = new AtomicInteger();
            List<Future<?>> tried = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                tried.add(callers.submit(() -> guard.call(() -> {
                    trials.incrementAndGet();
                    hang(trialsEnd);
                    return "responded";
                })));
            }
            await().until(() ->
                    trials.get() + tried.stream().filter(Future::isDone).count() == 20);
            assertThat(trials.get()).isLessThanOrEqualTo(8);
        } finally {
            fail.countDown();
            trialsEnd.countDown();
        }
    }
}
