package io.idempotence.server;

import static io.idempotence.server.Refusals.refusalOf;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.OnAbandoned;
import io.idempotence.http.Refusal;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.FaultyStorage.Call;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** Tests of what executions and their duplicates see of a process that has reached its limit of threads. */
class ThreadShortageTest {
    private static final IdempotencePolicy POLICY = IdempotencePolicy.defaults();

    private final IdempotenceStorage memory = IdempotenceStorage.inMemory();
    private final FaultyStorage storage = new FaultyStorage(memory);
    private final ThreadLimit limit = new ThreadLimit();
    private final List<IdempotenceEvent> events = new CopyOnWriteArrayList<>();
    private final AtomicInteger runs = new AtomicInteger();
    private final Idempotence idempotence = instance(POLICY);

    @AfterEach
    void close() {
        limit.lifted();
        storage.before((call, key) -> {}).after((call, key) -> {});
        idempotence.close();
    }

    private Idempotence instance(IdempotencePolicy policy) {
        return UnusualParts.withThreads(storage, policy, (event, id) -> events.add(event), limit);
    }

    private static IdempotentCall call(String id) {
        return IdempotentCall.of(IdempotenceId.of(id));
    }

    private Decision claim(String id) {
        return idempotence.engine().claim(call(id), POLICY);
    }

    private ClaimedExecution run(String id) {
        return (ClaimedExecution) claim(id);
    }

    private String execute(String id) throws Exception {
        return idempotence.execute(IdempotenceId.of(id), () -> "run " + runs.incrementAndGet());
    }

    private Optional<State> state(String operation, String id) {
        return memory.find(StorageKey.of("default", "", operation, IdempotenceId.of(id)))
                .map(record -> record.state());
    }

    private void lose(Call lost) {
        storage.before((call, key) -> {
            if (call == lost) {
                throw new StorageUnavailableException("the cable is out", null);
            }
        });
    }

    // ---- claims

    @Test
    @DisplayName("P6: an attempt whose lease nothing would renew is refused, and its claim is given back")
    void aClaimThatNothingWouldRenewIsGivenBack() throws Exception {
        limit.reached();
        assertThat(refusalOf(() -> execute("order-1"))).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        assertThat(runs).hasValue(0);
        assertThat(state("execute", "order-1")).contains(State.RELEASED);
        assertThat(events).containsExactly(IdempotenceEvent.STORAGE_ERROR);

        limit.lifted();
        assertThat(execute("order-2")).isEqualTo("run 1");
        assertThat(execute("order-1")).isEqualTo("run 2");
    }

    @Test
    @DisplayName("T9: a claim that could not be given back at once is not renewed, and is given back later")
    void aClaimThatCouldNotBeGivenBackAtOnceIsNotRenewed() {
        limit.reached();
        lose(Call.RELEASE);
        assertThat(claim("order-1")).isInstanceOf(Decision.Refuse.class);
        assertThat(state("", "order-1")).contains(State.IN_PROGRESS);

        limit.lifted();
        storage.before((call, key) -> {});
        ClaimedExecution another = run("order-2");
        await().until(() -> state("", "order-1").orElseThrow() == State.RELEASED);
        assertThat(storage.count(Call.RENEW)).isZero();
        another.release();
        another.finishWithoutResult(Verdict.RELEASE);
    }

    @Test
    @DisplayName("T7: a take-over that nothing would renew leaves the record abandoned")
    void aTakeOverThatNothingWouldRenewLeavesTheRecordAbandoned() {
        StorageKey key = StorageKey.of("default", "", "", IdempotenceId.of("order-1"));
        memory.claim(new ClaimRequest(
                key, Fingerprint.NONE, new Owner(1, 2), Duration.ofMillis(1), Duration.ofHours(1), false));
        await().until(() -> state("", "order-1").orElseThrow() == State.ABANDONED);
        limit.reached();
        IdempotencePolicy reExecute =
                IdempotencePolicy.builder().onAbandoned(OnAbandoned.RE_EXECUTE).build();
        assertThat(idempotence.engine().claim(call("order-1"), reExecute)).isInstanceOf(Decision.Refuse.class);
        await().until(() -> state("", "order-1").orElseThrow() == State.ABANDONED);

        limit.lifted();
        ClaimedExecution again = (ClaimedExecution) idempotence.engine().claim(call("order-1"), reExecute);
        assertThat(again.takenOver()).isTrue();
        again.finishWithoutResult(Verdict.KEEP);
    }

    @Test
    @DisplayName("T9: leases are renewed although only one thread could be started")
    void oneThreadRenewsAllLeases() {
        IdempotencePolicy shortLease =
                IdempotencePolicy.builder().lease(Duration.ofMillis(300)).build();
        AtomicInteger started = new AtomicInteger();
        List<StorageKey> renewed = new CopyOnWriteArrayList<>();
        storage.after((call, key) -> {
            if (call == Call.RENEW) {
                renewed.add(key);
            }
        });
        limit.reachedFor(name -> started.incrementAndGet() > 1);
        ClaimedExecution first = (ClaimedExecution) idempotence.engine().claim(call("order-1"), shortLease);
        ClaimedExecution second = (ClaimedExecution) idempotence.engine().claim(call("order-2"), shortLease);
        for (String id : List.of("order-1", "order-2")) {
            await(id)
                    .until(() -> Collections.frequency(renewed, StorageKey.of("default", "", "", IdempotenceId.of(id)))
                            >= 4);
        }
        first.finishWithoutResult(Verdict.KEEP);
        second.finishWithoutResult(Verdict.KEEP);
    }

    // ---- waiting duplicates

    @Test
    @DisplayName("a duplicate that no thread could wake is refused as in progress, and its place is free again")
    void aDuplicateThatNothingWouldWakeIsRefusedAndLeavesItsPlace() throws Exception {
        for (String name : List.of("idempotence-timeouts", "idempotence-polls")) {
            ThreadLimit threads = new ThreadLimit();
            WaitingDuplicates waiting = new WaitingDuplicates(key -> false, 1, threads);
            Decision.Substitute ended = FixedDecisions.outcomeUnknown();
            ClaimRequest request = new ClaimRequest(
                    StorageKey.of("default", "", "", IdempotenceId.of("order-1")),
                    Fingerprint.NONE,
                    new Owner(1, 2),
                    Duration.ofSeconds(30),
                    Duration.ofHours(1),
                    false);
            threads.reachedFor(name::equals);
            for (int i = 0; i < 3; i++) {
                assertThat(waiting.await(request, Duration.ofMinutes(1), FixedDecisions.askAgain(), () -> ended)
                                .getNow(null))
                        .as("without %s", name)
                        .isInstanceOf(Decision.Refuse.class);
            }
            threads.lifted();
            CompletableFuture<Decision.Substitute> waiter =
                    waiting.await(request, Duration.ofMinutes(1), FixedDecisions.askAgain(), () -> ended);
            await().until(waiter::isDone);
            assertThat(waiter.get()).as("after %s", name).isSameAs(ended);
            waiting.close();
        }
    }

    // ---- completions

    @Test
    @DisplayName("T22: an execution whose completion fails gets its result although no thread can retry the write")
    void aFailedCompletionWaitsForAThread() {
        ClaimedExecution execution = run("order-1");
        limit.reached();
        lose(Call.COMPLETE);
        assertThat(execution.finish(Verdict.KEEP, StoredResult.nothing())).isEmpty();

        limit.lifted();
        storage.before((call, key) -> {});
        // Whatever it is, it finds the threads missing.
        idempotence.delete(IdempotenceId.of("another"));
        await().until(() -> state("", "order-1").orElseThrow() == State.COMPLETED);
    }

    @Test
    @DisplayName("T22: a write that waits for a thread of its own is made when there is one, without another attempt")
    void aWriteThatWaitsForAThreadOfItsOwnIsMadeWhenThereIsOne() {
        ClaimedExecution execution = run("order-1");
        limit.reachedFor("idempotence-writes"::equals);
        lose(Call.COMPLETE);
        assertThat(execution.finish(Verdict.KEEP, StoredResult.nothing())).isEmpty();
        storage.before((call, key) -> {});
        long probes = storage.count(Call.DELETE);
        await("probes that succeed").until(() -> storage.count(Call.DELETE) > probes + 1);
        assertThat(state("", "order-1")).contains(State.IN_PROGRESS);

        limit.lifted();
        await().until(() -> state("", "order-1").orElseThrow() == State.COMPLETED);
    }

    @Test
    @DisplayName("T22: closing makes the waiting writes although no thread can be started")
    void closingMakesTheWaitingWritesWithoutAThread() {
        ClaimedExecution execution = run("order-1");
        limit.reached();
        lose(Call.COMPLETE);
        assertThat(execution.finish(Verdict.KEEP, StoredResult.nothing())).isEmpty();
        storage.before((call, key) -> {});
        idempotence.close();
        assertThat(state("", "order-1")).contains(State.COMPLETED);
        assertThat(events).doesNotContain(IdempotenceEvent.UNKNOWN);
    }

    @Test
    @DisplayName("T10: completions that follow their responses are written by their callers while there is no thread")
    void completionsThatFollowTheirResponsesAreWrittenByTheirCallers() throws Exception {
        IdempotencePolicy afterResponse = IdempotencePolicy.builder()
                .completion(IdempotencePolicy.Completion.AFTER_RESPONSE)
                .build();
        Idempotence follows = instance(afterResponse);
        limit.reachedFor("idempotence-writes"::equals);
        for (int i = 0; i < 3; i++) {
            String id = "order-" + i;
            follows.execute(IdempotenceId.of(id), () -> "paid");
            assertThat(state("execute", id)).contains(State.COMPLETED);
        }
        limit.lifted();
        CountDownLatch written = new CountDownLatch(1);
        storage.after((call, key) -> {
            if (call == Call.COMPLETE) {
                written.countDown();
            }
        });
        follows.execute(IdempotenceId.of("order-3"), () -> "paid");
        written.await();
        follows.close();
    }
}
