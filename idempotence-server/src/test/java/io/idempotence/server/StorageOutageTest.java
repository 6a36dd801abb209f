package io.idempotence.server;

import static io.idempotence.server.Refusals.refusalOf;
import static io.idempotence.server.storage.FaultyStorage.hang;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.FaultyStorage.Call;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** Tests of what requests, executions and the log see of a storage that is down for a while. */
class StorageOutageTest {
    private final IdempotenceStorage memory = IdempotenceStorage.inMemory();
    private final FaultyStorage storage = new FaultyStorage(memory);
    private final List<String> told = new CopyOnWriteArrayList<>();
    private final Idempotence idempotence = Idempotence.builder(storage)
            .listener(new IdempotenceListener() {
                @Override
                public void onEvent(IdempotenceEvent event, IdempotenceId id) {
                    told.add(event.name());
                }

                @Override
                public void onStorage(StorageState state) {
                    told.add(state.name());
                }
            })
            .build();
    private final ExecutorService callers = Executors.newCachedThreadPool();
    private final AtomicInteger ids = new AtomicInteger();

    @AfterEach
    void stop() {
        works();
        callers.shutdownNow();
        idempotence.close();
    }

    private void isDown() {
        storage.before((call, which) -> {
            throw new StorageUnavailableException("the storage does not respond", null);
        });
    }

    private void works() {
        storage.before((call, which) -> {});
    }

    private String execute() throws Exception {
        return idempotence.execute(IdempotenceId.of("order-" + ids.incrementAndGet()), () -> "paid");
    }

    private Refusal refusal() {
        return refusalOf(this::execute);
    }

    private void openTheBreaker() {
        isDown();
        for (int i = 0; i < 10; i++) {
            assertThat(refusal()).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        }
        assertThat(told).contains("UNAVAILABLE");
    }

    private ClaimedExecution run(String id) {
        Decision decision =
                idempotence.engine().claim(IdempotentCall.of(IdempotenceId.of(id)), IdempotencePolicy.defaults());
        return (ClaimedExecution) decision;
    }

    private State state(String id) {
        return memory.find(StorageKey.of("default", "", "", IdempotenceId.of(id)))
                .orElseThrow()
                .state();
    }

    @Test
    @DisplayName(
            "P6: after repeated failures attempts are refused without asking the storage, until a probe finds it back")
    void attemptsAreRefusedAtOnceWhileTheStorageIsKnownToBeDown() throws Exception {
        openTheBreaker();
        long claims = storage.count(Call.CLAIM);
        for (int i = 0; i < 100; i++) {
            assertThat(refusal()).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        }
        assertThat(storage.count(Call.CLAIM)).isEqualTo(claims);
        await("a probe").until(() -> storage.count(Call.DELETE) > 1);
        assertThat(told).doesNotContain("AVAILABLE");

        works();
        await().until(() -> told.contains("AVAILABLE"));
        for (int i = 0; i < 20; i++) {
            assertThat(execute()).isEqualTo("paid");
        }
        assertThat(told).containsOnlyOnce("UNAVAILABLE");
    }

    private void refuseFourAttempts() {
        isDown();
        // Each attempt calls the storage twice.
        for (int i = 0; i < 4; i++) {
            assertThat(refusal()).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        }
    }

    @Test
    @DisplayName("an outage is half of the latest 20 calls, however many have succeeded before")
    void onlyTheLatestCallsCount() throws Exception {
        for (int round = 0; round < 4; round++) {
            works();
            for (int i = 0; i < 100; i++) {
                assertThat(execute()).isEqualTo("paid");
            }
            refuseFourAttempts();
            assertThat(told).doesNotContain("UNAVAILABLE");
        }
        assertThat(refusal()).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        assertThat(told).contains("UNAVAILABLE");
    }

    @Test
    @DisplayName("what a healthy storage refuses, or a damaged record, is no outage")
    void refusalsOfAHealthyStorageOpenNothing() throws Exception {
        List<RuntimeException> replies = List.of(
                StorageUnavailableException.refused("out of memory", null), new CorruptRecordException("damaged"));
        for (RuntimeException reply : replies) {
            storage.before((call, which) -> {
                throw reply;
            });
            for (int i = 0; i < 50; i++) {
                assertThat(refusal()).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
            }
            works();
            assertThat(execute()).isEqualTo("paid");
        }
        assertThat(told).doesNotContain("UNAVAILABLE");
    }

    @Test
    @DisplayName("T22: an execution that ends while the storage is known to be down is recorded as soon as it is back")
    void endsAreWrittenWhenTheStorageIsBack() {
        ClaimedExecution execution = run("running");
        openTheBreaker();
        execution.finish(Verdict.KEEP, StoredResult.nothing());
        assertThat(storage.count(Call.COMPLETE)).isZero();
        assertThat(state("running")).isEqualTo(State.IN_PROGRESS);

        works();
        await().until(() -> state("running") == State.COMPLETED);
    }

    @Test
    @DisplayName("T22: a pending end is not written a long back-off after the storage is back")
    void aPendingEndIsWrittenSoonAfterTheStorageIsBack() {
        ClaimedExecution execution = run("running");
        isDown();
        execution.finish(Verdict.KEEP, StoredResult.nothing());
        await().until(() -> storage.count(Call.COMPLETE) >= 8);
        works();
        long start = System.nanoTime();
        await().until(() -> state("running") == State.COMPLETED);
        // Its back-off would be over 12 s by now if it doubled each time.
        assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofSeconds(9));
    }

    @Test
    @DisplayName("a storage that hangs holds a bounded number of threads, and others are refused at once")
    void aStorageThatHangsHoldsABoundedNumberOfThreads() throws Exception {
        CountDownLatch goOn = new CountDownLatch(1);
        storage.before((call, which) -> {
            if (call == Call.CLAIM) {
                hang(goOn);
            }
        });
        List<Future<String>> calls = new ArrayList<>();
        for (int i = 0; i < StorageGuard.MOST_SLOW_CALLS; i++) {
            calls.add(callers.submit(this::execute));
        }
        await().until(() -> storage.count(Call.CLAIM) == StorageGuard.MOST_SLOW_CALLS);
        await("one that is refused").until(() -> {
            Future<String> another = callers.submit(this::execute);
            calls.add(another);
            return isRefused(another);
        });
        assertThat(told).contains("STORAGE_ERROR").doesNotContain("UNAVAILABLE");
        goOn.countDown();
        works();
        await().until(() -> calls.stream().allMatch(Future::isDone));
        assertThat(told.stream().filter("CLAIMED"::equals).count())
                .isGreaterThanOrEqualTo(StorageGuard.MOST_SLOW_CALLS);
    }

    @Test
    @DisplayName("T10: ends are recorded before their responses leave while slow claims keep other claims out")
    void endsAreRecordedAtOnceWhileSlowClaimsKeepOthersOut() throws Exception {
        List<ClaimedExecution> running = new ArrayList<>();
        for (int i = 0; i < 2 * StorageGuard.MOST_SLOW_CALLS; i++) {
            running.add(run("running-" + i));
        }
        CountDownLatch goOn = new CountDownLatch(1);
        CountDownLatch arrived = new CountDownLatch(running.size());
        storage.before((call, which) -> {
            if (call == Call.CLAIM) {
                hang(goOn);
            } else if (call == Call.COMPLETE) {
                // All of them wait for the storage at once, for longer than a claim may.
                arrived.countDown();
                awaitAll(arrived);
            }
        });
        try {
            for (int i = 0; i < StorageGuard.MOST_SLOW_CALLS; i++) {
                callers.submit(this::execute);
            }
            await("a claim that is refused").until(() -> isRefused(callers.submit(this::execute)));
            List<Future<State>> ends = new ArrayList<>();
            for (int i = 0; i < running.size(); i++) {
                String id = "running-" + i;
                ClaimedExecution execution = running.get(i);
                ends.add(callers.submit(() -> {
                    execution.finish(Verdict.KEEP, StoredResult.nothing());
                    return state(id);
                }));
            }
            for (Future<State> end : ends) {
                assertThat(end.get()).isEqualTo(State.COMPLETED);
            }
        } finally {
            goOn.countDown();
        }
    }

    @Test
    @DisplayName("a listener that is slow, as a slow log is, is no slow storage: attempts are not refused")
    void aSlowListenerIsNoOutage() throws Exception {
        Duration slow = Duration.ofMillis(100);
        storage.slowCall(slow);
        IdempotenceListener slowListener = (event, id) -> {
            if (event == IdempotenceEvent.RELEASED) {
                long begun = System.nanoTime();
                await().until(() -> System.nanoTime() - begun > slow.toNanos());
            }
        };
        try (Idempotence other = Idempotence.builder(storage)
                .namespace("other")
                .listener(slowListener)
                .build()) {
            List<Future<?>> ends = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                IdempotentCall call = IdempotentCall.of(IdempotenceId.of("order-" + i));
                Decision decision = other.engine().claim(call, other.policy());
                ClaimedExecution execution = (ClaimedExecution) decision;
                ends.add(callers.submit(() -> execution.finish(Verdict.RELEASE, StoredResult.nothing())));
            }
            for (Future<?> end : ends) {
                end.get();
            }
            assertThat(other.execute(IdempotenceId.of("order-20"), () -> "paid"))
                    .isEqualTo("paid");
        }
    }

    @Test
    @DisplayName("trial calls that hang keep others out for a bounded time: the storage is back for all later calls")
    void trialCallsThatHangDoNotKeepOthersOut() throws Exception {
        CountDownLatch goOn = new CountDownLatch(1);
        AtomicInteger hanging = new AtomicInteger();
        openTheBreaker();
        storage.before((call, which) -> {
            if (call == Call.CLAIM) {
                hanging.incrementAndGet();
                hang(goOn);
            }
        });
        try {
            await("trials").until(() -> {
                callers.submit(this::execute);
                return hanging.get() >= 8;
            });
            // The storage responds from here on; those eight, in a pool's queue say, wait still.
            works();
            await().until(() -> {
                try {
                    return execute().equals("paid");
                } catch (ExecutionRefusedException e) {
                    return false;
                }
            });
        } finally {
            goOn.countDown();
        }
    }

    private static boolean isRefused(Future<String> call) throws Exception {
        try {
            call.get(100, TimeUnit.MILLISECONDS);
            return false;
        } catch (TimeoutException e) {
            return false;
        } catch (ExecutionException e) {
            return e.getCause() instanceof ExecutionRefusedException;
        }
    }

    @Test
    @DisplayName("an outage is logged when it begins, with its cause, and when it is over; not once for each request")
    void anOutageIsLoggedAtItsBeginningAndAtItsEnd() {
        try (CapturedLog log = CapturedLog.of(Idempotence.class)) {
            isDown();
            for (int i = 0; i < 100; i++) {
                refusal();
            }
            assertThat(log.warnings()).hasSize(1);
            assertThat(log.warnings().get(0).getThrowableProxy()).isNotNull();
            works();
            await().until(() -> log.warnings().size() == 2);
            assertThat(log.warnings().get(1).getFormattedMessage()).startsWith("the storage responds again");
        }
        assertThat(told.stream().filter("STORAGE_ERROR"::equals)).hasSize(100);
    }

    private static void awaitAll(CountDownLatch arrived) {
        try {
            arrived.await(5, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
