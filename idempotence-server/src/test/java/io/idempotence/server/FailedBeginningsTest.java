package io.idempotence.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.FailureRule;
import io.idempotence.IdempotenceId;
import io.idempotence.OnAbandoned;
import io.idempotence.http.Refusal;
import io.idempotence.server.storage.ClaimRequest;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.FaultyStorage.Call;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.RecordState;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.slf4j.MDC;

/** What becomes of a claim if something of the application fails before the first line of its work. */
class FailedBeginningsTest {
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

    private RecordState state() {
        return memory.find(key).orElseThrow().state();
    }

    private static StorageUnavailableException unavailable() {
        return new StorageUnavailableException("the storage does not respond", null);
    }

    // ---- beginnings

    @Test
    @DisplayName("P2: work that cannot begin gives its claim back, and its caller gets the exception")
    void workThatCannotBeginGivesItsClaimBack() throws Exception {
        try (FailingMdc mdc = FailingMdc.failing()) {
            assertThatThrownBy(() -> execute(STORES_FAILURES)).hasMessage(FailingMdc.MESSAGE);
        }
        assertThat(runs).hasValue(0);
        assertThat(state()).isEqualTo(RecordState.RELEASED);
        assertThat(events).containsExactly(IdempotenceEvent.CLAIMED, IdempotenceEvent.RELEASED);
        assertThat(execute(STORES_FAILURES)).isEqualTo("run 1");
    }

    @Test
    @DisplayName("P2: asynchronous work that cannot begin gives its claim back, and its future fails")
    void asynchronousWorkThatCannotBeginGivesItsClaimBack() {
        try (FailingMdc mdc = FailingMdc.failing()) {
            assertThatThrownBy(() -> executeAsync(new CompletableFuture<>()).join())
                    .hasRootCauseMessage(FailingMdc.MESSAGE);
        }
        assertThat(runs).hasValue(0);
        assertThat(state()).isEqualTo(RecordState.RELEASED);
        assertThat(executeAsync(CompletableFuture.completedFuture("done")).join())
                .isEqualTo("done");
    }

    @Test
    @DisplayName("T7: a take-over that cannot begin leaves the record abandoned")
    void aTakeOverThatCannotBeginLeavesTheRecordAbandoned() throws Exception {
        memory.claim(new ClaimRequest(
                key, Fingerprint.NONE, new Owner(1, 2), Duration.ofMillis(1), Duration.ofHours(1), false));
        await().until(() -> state() == RecordState.ABANDONED);
        IdempotencePolicy reExecute =
                IdempotencePolicy.builder().onAbandoned(OnAbandoned.RE_EXECUTE).build();
        try (FailingMdc mdc = FailingMdc.failing("put", call -> call == 2)) {
            assertThatThrownBy(() -> execute(reExecute)).hasMessage(FailingMdc.MESSAGE);
        }
        await().until(() -> state() == RecordState.ABANDONED);
        assertThat(execute(reExecute)).isEqualTo("run 1");
    }

    @Test
    @DisplayName("P2: an execution that has begun keeps its claim if it cannot be entered again")
    void anExecutionThatHasBegunKeepsItsClaim() {
        ClaimedExecution execution = ((Decision.Run)
                        idempotence.engine().claimAs(RecordKind.EXECUTE, IdempotentCall.of(id), STORES_FAILURES))
                .execution();
        execution.enter().run();
        try (FailingMdc mdc = FailingMdc.failing()) {
            assertThatThrownBy(execution::enter).hasMessage(FailingMdc.MESSAGE);
        }
        assertThat(state()).isEqualTo(RecordState.IN_PROGRESS);
        execution.finishWithoutResult(Verdict.KEEP);
    }

    @Test
    @DisplayName("T10: the result of asynchronous work is stored although the MDC cannot be restored")
    void asynchronousWorkIsFollowedAlthoughTheMdcCannotBeRestored() {
        CompletableFuture<String> future = new CompletableFuture<>();
        try (FailingMdc mdc = FailingMdc.failing("remove", call -> true)) {
            assertThatThrownBy(() -> executeAsync(future)).hasMessage(FailingMdc.MESSAGE);
        }
        future.complete("done");
        assertThat(state()).isEqualTo(RecordState.COMPLETED);
        assertThat(IdempotentExecution.current()).isEmpty();
    }

    // ---- the log lines of the framework itself

    @Test
    @DisplayName("T22: a completion that fails is retried although the log line about it gets no ID")
    void aFailedCompletionIsRetriedWithoutTheMdc() throws Exception {
        storage.before((call, which) -> {
            if (call == Call.COMPLETE) {
                throw unavailable();
            }
        });
        try (FailingMdc mdc = FailingMdc.failing("put", call -> call > 1)) {
            assertThat(execute(STORES_FAILURES)).isEqualTo("run 1");
            storage.before((call, which) -> {});
            await().until(() -> state() == RecordState.COMPLETED);
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
        await().until(() -> state() == RecordState.COMPLETED);
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
            await().until(() -> state() == RecordState.RELEASED);
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
                IdempotencePolicy.builder().lease(Duration.ofMillis(60)).build();
        ClaimedExecution execution = ((Decision.Run)
                        idempotence.engine().claimAs(RecordKind.EXECUTE, IdempotentCall.of(id), shortLease))
                .execution();
        try (FailingMdc mdc = FailingMdc.failing("remove", call -> true)) {
            long failed = storage.count(Call.RENEW);
            await().until(() -> storage.count(Call.RENEW) > failed + 3);
        }
        execution.finishWithoutResult(Verdict.KEEP);
        assertThat(state()).isEqualTo(RecordState.COMPLETED);
    }
}
