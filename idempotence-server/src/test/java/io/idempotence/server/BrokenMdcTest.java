package io.idempotence.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.FailureRule;
import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.FaultyStorage.Call;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.slf4j.MDC;

/** Executions in an application whose MDC throws: their log lines lack the ID, and nothing else is missing. */
class BrokenMdcTest {
    private static final IdempotencePolicy STORES_FAILURES = IdempotencePolicy.builder()
            .failureRule(FailureRule.STORE_EVERYTHING)
            .build();

    private final IdempotenceStorage memory = IdempotenceStorage.inMemory();
    private final FaultyStorage storage = new FaultyStorage(memory);
    private final List<IdempotenceEvent> events = new CopyOnWriteArrayList<>();
    private final Idempotence idempotence = Idempotence.builder(storage)
            .listener((event, which) -> events.add(event))
            .build();
    private final IdempotenceId id = IdempotenceId.of("order-1");
    private final StorageKey key = StorageKey.of("default", "", "execute", id);
    private final AtomicInteger runs = new AtomicInteger();

    @AfterEach
    void close() {
        storage.before((call, which) -> {}).after((call, which) -> {});
        idempotence.close();
        MDC.clear();
    }

    private String work() {
        return "run " + runs.incrementAndGet();
    }

    private String execute(IdempotencePolicy policy) throws Exception {
        return idempotence.execute(IdempotentCall.of(id), policy, ResultCodec.text(), execution -> work());
    }

    private CompletableFuture<String> executeAsync(CompletableFuture<String> future) {
        return idempotence.executeAsync(
                IdempotentCall.of(id), STORES_FAILURES, Duration.ZERO, ResultCodec.text(), execution -> {
                    runs.incrementAndGet();
                    return future;
                });
    }

    private State state() {
        return memory.find(key).orElseThrow().state();
    }

    private static StorageUnavailableException unavailable() {
        return new StorageUnavailableException("the storage does not respond", null);
    }

    @ParameterizedTest
    @ValueSource(strings = {"get", "put", "remove"})
    @DisplayName("P3: work runs once, and its result is replayed")
    void workRunsOnce(String method) throws Exception {
        try (FailingMdc mdc = FailingMdc.failing(method, call -> true)) {
            assertThat(execute(STORES_FAILURES)).isEqualTo("run 1");
            assertThat(execute(STORES_FAILURES)).isEqualTo("run 1");
        }
        assertThat(state()).isEqualTo(State.COMPLETED);
    }

    @ParameterizedTest
    @ValueSource(strings = {"get", "put", "remove"})
    @DisplayName("T10: the result of asynchronous work is stored")
    void asynchronousWorkIsStored(String method) {
        CompletableFuture<String> future = new CompletableFuture<>();
        try (FailingMdc mdc = FailingMdc.failing(method, call -> true)) {
            CompletableFuture<String> result = executeAsync(future);
            future.complete("done");
            assertThat(result.join()).isEqualTo("done");
        }
        assertThat(state()).isEqualTo(State.COMPLETED);
        assertThat(IdempotentExecution.current()).isEmpty();
    }

    @Test
    @DisplayName("P2: work that could not begin for lack of memory runs at the next attempt")
    void workThatCouldNotBeginRunsAtTheNextAttempt() throws Exception {
        try (FailingMdc mdc = FailingMdc.withoutMemory(1)) {
            assertThatThrownBy(() -> execute(STORES_FAILURES)).isInstanceOf(OutOfMemoryError.class);
            assertThat(state()).isEqualTo(State.RELEASED);
            assertThat(execute(STORES_FAILURES)).isEqualTo("run 1");
        }
    }

    @Test
    @DisplayName("P2: asynchronous work that could not begin for lack of memory runs at the next attempt")
    void asynchronousWorkThatCouldNotBeginRunsAtTheNextAttempt() {
        try (FailingMdc mdc = FailingMdc.withoutMemory(1)) {
            assertThat(executeAsync(CompletableFuture.completedFuture("done")))
                    .isCompletedExceptionally()
                    .failsWithin(Duration.ZERO)
                    .withThrowableThat()
                    .withCauseInstanceOf(OutOfMemoryError.class);
            assertThat(state()).isEqualTo(State.RELEASED);
            assertThat(executeAsync(CompletableFuture.completedFuture("done"))).isCompletedWithValue("done");
        }
        assertThat(runs).hasValue(1);
    }

    private String inAnother(Runnable work) throws Exception {
        return idempotence.execute(
                IdempotentCall.of(IdempotenceId.of("order-2")), STORES_FAILURES, ResultCodec.text(), execution -> {
                    work.run();
                    return "done";
                });
    }

    @Test
    @DisplayName("P1: a task that carries nested executions leaves none of them on its thread")
    void aCarriedTaskLeavesNoExecution() throws Exception {
        AtomicReference<Runnable> carried = new AtomicReference<>();
        List<IdempotentExecution> seen = new CopyOnWriteArrayList<>();
        try (FailingMdc mdc = FailingMdc.failing("remove", call -> true)) {
            idempotence.execute(
                    IdempotentCall.of(id),
                    STORES_FAILURES,
                    ResultCodec.text(),
                    outer -> inAnother(() -> carried.set(
                            IdempotentExecution.carried(() -> seen.addAll(IdempotentExecution.current())))));
            carried.get().run();
        }
        assertThat(seen).hasSize(2);
        assertThat(IdempotentExecution.current()).isEmpty();
    }

    @Test
    @DisplayName("T22: a completion that fails is retried although the log line about it gets no ID")
    void aFailedCompletionIsRetriedWithoutTheMdc() throws Exception {
        storage.before((call, which) -> {
            if (call == Call.COMPLETE) {
                throw unavailable();
            }
        });
        try (FailingMdc mdc = FailingMdc.failing()) {
            assertThat(execute(STORES_FAILURES)).isEqualTo("run 1");
            storage.before((call, which) -> {});
            await().until(() -> state() == State.COMPLETED);
        }
    }

    @Test
    @DisplayName("T22: a completion is retried although its second failure cannot be logged with its ID")
    void aCompletionIsRetriedAgainWithoutTheMdc() throws Exception {
        storage.before((call, which) -> {
            if (call == Call.COMPLETE) {
                throw unavailable();
            }
        });
        assertThat(execute(STORES_FAILURES)).isEqualTo("run 1");
        try (FailingMdc mdc = FailingMdc.failing()) {
            long failed = storage.count(Call.COMPLETE);
            await().until(() -> storage.count(Call.COMPLETE) > failed + 2);
        }
        storage.before((call, which) -> {});
        await().until(() -> state() == State.COMPLETED);
    }

    @Test
    @DisplayName("T21: a claim is refused and given back although the log lines about it get no ID")
    void aClaimIsGivenBackWithoutTheMdc() {
        storage.after((call, which) -> {
            if (call == Call.CLAIM) {
                throw unavailable();
            }
        });
        try (FailingMdc mdc = FailingMdc.failing()) {
            assertThat(Refusals.refusalOf(() -> execute(STORES_FAILURES))).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
            storage.after((call, which) -> {});
            await().until(() -> state() == State.RELEASED);
        }
        assertThat(runs).hasValue(0);
    }

    @Test
    @DisplayName("T9: an execution is claimed and stored although the MDC cannot be restored after a log line")
    void theMdcThatCannotBeRestoredAfterALogLineCostsNothing() {
        storage.after((call, which) -> {
            if (call == Call.RENEW) {
                throw unavailable();
            }
        });
        IdempotencePolicy shortLease =
                IdempotencePolicy.builder().lease(Duration.ofMillis(250)).build();
        ClaimedExecution execution = (ClaimedExecution) idempotence.engine().claim(IdempotentCall.of(id), shortLease);
        try (FailingMdc mdc = FailingMdc.failing("remove", call -> true)) {
            long failed = storage.count(Call.RENEW);
            await().until(() -> storage.count(Call.RENEW) > failed + 3);
        }
        execution.finishWithoutResult(Verdict.KEEP);
        assertThat(memory.find(execution.key()).orElseThrow().state()).isEqualTo(State.COMPLETED);
    }
}
