package io.idempotence.server;

import static io.idempotence.server.IdempotencePolicy.Completion.AFTER_RESPONSE;
import static io.idempotence.server.Refusals.refusalOf;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.OnAbandoned;
import io.idempotence.http.Refusal;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.FaultyStorage.Call;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.MovingClock;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** An operation whose completion is recorded after its caller has the result. */
class CompletionAfterResponseTest {
    private static final int BATCH = 16;
    private static final IdempotencePolicy POLICY =
            IdempotencePolicy.builder().completion(AFTER_RESPONSE).build();

    private final IdempotenceStorage memory = IdempotenceStorage.inMemory(1_000, new MovingClock());
    private final FaultyStorage storage = new FaultyStorage(memory);
    private final Idempotence idempotence = UnusualParts.withoutBreaker(storage, POLICY);
    private final AtomicInteger runs = new AtomicInteger();
    private final CountDownLatch storageWorks = new CountDownLatch(1);
    private final ExecutorService threads = Executors.newFixedThreadPool(8);

    @AfterEach
    void stop() {
        storageWorks.countDown();
        storage.before((call, which) -> {}).after((call, which) -> {});
        idempotence.close();
        threads.shutdownNow();
    }

    private String run(String id) throws Exception {
        return idempotence.execute(IdempotenceId.of(id), () -> "run " + runs.incrementAndGet());
    }

    private void runOrders(int from, int to) throws Exception {
        for (int i = from; i < to; i++) {
            run("order-" + i);
        }
    }

    private void awaitRecordsOfOrders(int from, int to) {
        for (int i = from; i < to; i++) {
            String id = "order-" + i;
            await().until(() -> state(id), "completed"::equals);
        }
    }

    private void completionsHang() {
        storage.before((call, which) -> {
            if (call == Call.COMPLETE) {
                awaitStorage();
            }
        });
    }

    private void awaitStorage() {
        try {
            storageWorks.await();
        } catch (InterruptedException e) {
            throw new StorageUnavailableException("interrupted", e);
        }
    }

    private String state(String id) {
        return memory.find(key(id)).map(record -> record.state().label()).orElse("none");
    }

    private static StorageKey key(String id) {
        return StorageKey.of("default", "", "execute", IdempotenceId.of(id));
    }

    @Test
    void theCallerDoesNotWaitForTheRecord() throws Exception {
        completionsHang();
        assertThat(run("order-1")).isEqualTo("run 1");
        assertThat(refusalOf(() -> run("order-1"))).isEqualTo(Refusal.IN_PROGRESS);

        storageWorks.countDown();
        await().until(() -> state("order-1"), "completed"::equals);
        assertThat(run("order-1")).isEqualTo("run 1");
    }

    @Test
    void aDuplicateThatWaitsGetsTheResultWhenItIsRecorded() throws Exception {
        completionsHang();
        run("order-1");
        CompletableFuture<String> waiting = idempotence.executeAsync(
                IdempotentCall.of(IdempotenceId.of("order-1")),
                POLICY,
                Duration.ofMinutes(1),
                ResultCodec.text(),
                execution -> CompletableFuture.completedFuture("run " + runs.incrementAndGet()));
        assertThat(waiting).isNotDone();

        storageWorks.countDown();
        assertThat(waiting.get(60, TimeUnit.SECONDS)).isEqualTo("run 1");
    }

    @Test
    void aReleaseIsRecordedBeforeTheFailureLeaves() {
        assertThatThrownBy(() -> idempotence.execute(IdempotenceId.of("order-1"), () -> {
                    throw new IllegalStateException("out of stock");
                }))
                .hasMessage("out of stock");
        assertThat(state("order-1")).isEqualTo("released");
    }

    @Test
    void theOutcomeUnknownIsRecordedBeforeTheResultLeaves() throws Exception {
        idempotence.execute(IdempotenceId.of("order-1"), ResultCodec.text(), execution -> {
            execution.markUnknown();
            return "perhaps";
        });
        assertThat(state("order-1")).isEqualTo("unknown");
    }

    @Test
    void aCompletionThatFailsIsRetried() throws Exception {
        AtomicBoolean failed = new AtomicBoolean();
        storage.before((call, which) -> {
            if (call == Call.COMPLETE && failed.compareAndSet(false, true)) {
                throw new StorageUnavailableException("the storage does not respond", null);
            }
        });
        assertThat(run("order-1")).isEqualTo("run 1");
        await().until(() -> state("order-1"), "completed"::equals);
        assertThat(failed).isTrue();
    }

    @Test
    void completionsThatWaitAreSentTogether() throws Exception {
        storage.completionsPerRoundTrip(BATCH);
        completionsHang();
        runOrders(0, BATCH);
        storageWorks.countDown();
        awaitRecordsOfOrders(0, BATCH);
        // One list when the storage works again, after one completion, or after a list, that was already on its way.
        assertThat(storage.batches()).hasSizeBetween(1, 2);
        assertThat(storage.batches().stream().mapToInt(Integer::intValue).sum()).isGreaterThanOrEqualTo(BATCH - 1);
    }

    /** A dead connection must not keep all results from later attempts. */
    @Test
    void aRoundTripThatHangsHoldsUpNoMoreThanOneBatch() throws Exception {
        storage.completionsPerRoundTrip(BATCH);
        StorageKey first = key("order-0");
        storage.before((call, which) -> {
            if (call == Call.COMPLETE && which.equals(first)) {
                awaitStorage();
            }
        });
        run("order-0");
        await().until(() -> storage.count(Call.COMPLETE), count -> count == 1);
        runOrders(1, 1 + BATCH);
        awaitRecordsOfOrders(1, 1 + BATCH);
        assertThat(state("order-0")).isEqualTo("in-progress");
    }

    /** Calls and replies of whole batches get lost, and nobody gets another's result. */
    @Test
    void everyResultIsRecordedUnderItsOwnIdWhateverBatchesFail() throws Exception {
        int callers = 8;
        int each = 40;
        storage.completionsPerRoundTrip(BATCH);
        FaultyStorage.Fault loses = (call, which) -> {
            if (call == Call.COMPLETE && ThreadLocalRandom.current().nextInt(20) == 0) {
                throw new StorageUnavailableException("the storage does not respond", null);
            }
        };
        storage.after(loses).before((call, which) -> {
            if (call == Call.COMPLETE) {
                awaitStorage();
            }
            loses.on(call, which);
        });
        List<CompletableFuture<Void>> all = new ArrayList<>();
        for (int caller = 0; caller < callers; caller++) {
            String prefix = "order-" + caller + "-";
            all.add(CompletableFuture.runAsync(
                    () -> {
                        for (int i = 0; i < each; i++) {
                            execute(prefix + i);
                        }
                    },
                    threads));
        }
        // Until then they queue, so that there are batches however fast the machine is.
        await().until(runs::get, count -> count >= 2 * BATCH);
        storageWorks.countDown();
        for (CompletableFuture<Void> caller : all) {
            caller.get(60, TimeUnit.SECONDS);
        }
        for (int caller = 0; caller < callers; caller++) {
            for (int i = 0; i < each; i++) {
                String id = "order-" + caller + "-" + i;
                await().until(() -> state(id), "completed"::equals);
                assertThat(execute(id)).isEqualTo("result of " + id);
            }
        }
        assertThat(runs).hasValue(callers * each);
        assertThat(storage.batches()).anyMatch(size -> size > 1);
    }

    private String execute(String id) {
        try {
            return idempotence.execute(IdempotenceId.of(id), () -> {
                runs.incrementAndGet();
                return "result of " + id;
            });
        } catch (Exception e) {
            throw new CompletionException(e);
        }
    }

    /** A storage that breaks its contract costs a second write, not a record. */
    @Test
    void aStorageThatReturnsTooFewOutcomesIsAskedForEach() throws Exception {
        assertEveryCompletionIsRecorded(storage.completionsPerRoundTrip(BATCH).losingOutcomes());
    }

    @Test
    void anErrorInTheStorageCostsNoRecord() throws Exception {
        assertEveryCompletionIsRecorded(storage.completionsPerRoundTrip(BATCH).breakingAnOutcome());
    }

    private void assertEveryCompletionIsRecorded(FaultyStorage faulty) throws Exception {
        completionsHang();
        runOrders(0, BATCH);
        storageWorks.countDown();
        awaitRecordsOfOrders(0, BATCH);
        runOrders(0, BATCH);
        assertThat(runs).hasValue(BATCH);
        // The storage has them all, but only a second write can tell.
        await().until(() -> faulty.count(FaultyStorage.Call.COMPLETE) > BATCH);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, BATCH})
    void closingRecordsWhatIsNotRecordedYet(int completionsPerRoundTrip) throws Exception {
        storage.completionsPerRoundTrip(completionsPerRoundTrip);
        CountDownLatch closing = new CountDownLatch(1);
        completionsHang();
        runOrders(0, 40);
        assertThat(state("order-39")).isEqualTo("in-progress");
        CompletableFuture<Void> closed = CompletableFuture.runAsync(() -> {
            closing.countDown();
            idempotence.close();
        });
        closing.await();
        storageWorks.countDown();
        closed.get(60, TimeUnit.SECONDS);
        for (int i = 0; i < 40; i++) {
            assertThat(state("order-" + i)).isEqualTo("completed");
        }
    }

    /** Otherwise another instance would find the record abandoned while this process stops. */
    @Test
    void aCompletionThatHangsKeepsItsLeaseWhileTheProcessStops() throws Exception {
        completionsHang();
        IdempotencePolicy shortLease =
                POLICY.toBuilder().lease(Duration.ofMillis(300)).build();
        idempotence.execute(
                IdempotentCall.of(IdempotenceId.of("order-1")), shortLease, ResultCodec.text(), execution -> "paid");
        CountDownLatch closing = new CountDownLatch(1);
        CompletableFuture<Void> closed = CompletableFuture.runAsync(() -> {
            closing.countDown();
            idempotence.close();
        });
        closing.await();
        long before = storage.count(Call.RENEW);
        await().until(() -> storage.count(Call.RENEW), count -> count >= before + 4);
        assertThat(closed).isNotDone();

        storageWorks.countDown();
        closed.get(60, TimeUnit.SECONDS);
        assertThat(state("order-1")).isEqualTo("completed");
    }

    @ParameterizedTest
    @ValueSource(ints = {1, BATCH})
    void callersWaitForASlowStorageWhenTooManyCompletionsWait(int completionsPerRoundTrip) throws Exception {
        storage.completionsPerRoundTrip(completionsPerRoundTrip);
        completionsHang();
        runOrders(0, CompletionQueue.MAX_UNWRITTEN);
        CompletableFuture<String> next = CompletableFuture.supplyAsync(() -> {
            try {
                return run("one too many");
            } catch (Exception e) {
                throw new CompletionException(e);
            }
        });
        await().until(runs::get, count -> count == CompletionQueue.MAX_UNWRITTEN + 1);
        assertThat(next).isNotDone();

        storageWorks.countDown();
        next.get(60, TimeUnit.SECONDS);
        assertThat(state("one too many")).isEqualTo("completed");
    }

    @Test
    void anOwnerWhoseLeaseMayBeOverRecordsFirst() throws Exception {
        IdempotencePolicy shortLease =
                POLICY.toBuilder().lease(Duration.ofSeconds(1)).build();
        storage.withoutRenewals();
        String result = idempotence.execute(
                IdempotentCall.of(IdempotenceId.of("order-1")), shortLease, ResultCodec.text(), execution -> {
                    await().until(() -> ((ClaimedExecution) execution).lease().mayBeOver());
                    return "late";
                });
        assertThat(result).isEqualTo("late");
        assertThat(state("order-1")).isEqualTo("completed");
    }

    /** Until then the record has the bare error, which duplicates would get instead of the page. */
    @Test
    void anErrorPageIsRecordedBeforeItLeaves() throws Exception {
        completionsHang();
        IdempotentCall call = IdempotentCall.of("orders", IdempotenceId.of("order-1"));
        ClaimedExecution execution = (ClaimedExecution) idempotence.engine().claim(call, POLICY);
        execution.finishProvisionally(Verdict.KEEP, StoredResult.value(new byte[] {1}));
        CompletableFuture<?> page =
                CompletableFuture.runAsync(() -> execution.replace(StoredResult.value(new byte[] {2})));
        await().until(() -> storage.count(Call.COMPLETE), count -> count == 1);
        assertThat(page).isNotDone();
        assertThat(idempotence.engine().claim(call, POLICY)).isInstanceOf(Decision.Refuse.class);

        storageWorks.countDown();
        page.get(60, TimeUnit.SECONDS);
        Decision.Replay replay = (Decision.Replay) idempotence.engine().claim(call, POLICY);
        assertThat(replay.result()).isEqualTo(StoredResult.value(new byte[] {2}));
    }

    @Test
    void runningAgainAfterACrashIsNotAllowedWithIt() {
        assertThatThrownBy(() ->
                        POLICY.toBuilder().onAbandoned(OnAbandoned.RE_EXECUTE).build())
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("AFTER_RESPONSE")
                .hasMessageContaining("RE_EXECUTE")
                .hasMessageContaining("REFUSE or RECOVER");
    }
}
