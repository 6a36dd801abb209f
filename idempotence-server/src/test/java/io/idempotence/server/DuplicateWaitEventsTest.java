package io.idempotence.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The listener counts a response to a duplicate that waited as it counts the same response to one that did not. */
class DuplicateWaitEventsTest {
    private static final Duration LONG = Duration.ofMinutes(5);
    private static final IdempotencePolicy POLICY = IdempotencePolicy.defaults();
    /** Renewed after 1.3 s, so that the loss is soon seen, and long enough that three can begin to wait within it. */
    private static final IdempotencePolicy SHORT_LEASE =
            IdempotencePolicy.builder().lease(Duration.ofSeconds(4)).build();

    /** Where the first attempt runs. */
    enum Where {
        HERE,
        IN_ANOTHER_PROCESS
    }

    private final IdempotentCall call = IdempotentCall.of(IdempotenceId.of("order-1"));
    private final IdempotenceStorage memory = IdempotenceStorage.inMemory();
    private final FaultyStorage storage = new FaultyStorage(memory);
    private final List<IdempotenceEvent> events = new CopyOnWriteArrayList<>();
    private final Idempotence idempotence = Idempotence.builder(storage)
            .listener((event, id) -> events.add(event))
            .build();
    private final Idempotence other = Idempotence.over(memory);
    private final List<CompletableFuture<Decision>> waiters = new ArrayList<>();

    @AfterEach
    void stop() {
        idempotence.close();
        other.close();
    }

    private ClaimedExecution run(Where where) {
        Idempotence first = where == Where.HERE ? idempotence : other;
        return (ClaimedExecution) first.engine().claim(call, POLICY);
    }

    private void threeWait() {
        for (int i = 0; i < 3; i++) {
            waiters.add(Duplicates.claim(idempotence, call, POLICY, LONG));
        }
        assertThat(waiters).noneMatch(CompletableFuture::isDone);
        events.clear();
    }

    private void assertRefused(Refusal refusal) {
        for (CompletableFuture<Decision> waiter : waiters) {
            assertThat(waiter.orTimeout(1, TimeUnit.MINUTES).join())
                    .isInstanceOfSatisfying(
                            Decision.Refuse.class,
                            refuse -> assertThat(refuse.refusal()).isEqualTo(refusal));
        }
    }

    private void assertCounted(IdempotenceEvent... expected) {
        await().untilAsserted(() -> assertThat(events).containsExactly(expected));
    }

    /** Each of the three that waited, and then one that does not wait. */
    private void assertEachCountsAs(IdempotenceEvent expected) {
        assertCounted(expected, expected, expected);
        assertOneWhoDoesNotWaitCountsAs(expected);
    }

    private void assertOneWhoDoesNotWaitCountsAs(IdempotenceEvent expected) {
        events.clear();
        idempotence.engine().claim(call, POLICY);
        assertCounted(expected);
    }

    @ParameterizedTest
    @EnumSource
    void replays(Where where) {
        ClaimedExecution execution = run(where);
        threeWait();
        execution.finish(Verdict.KEEP, StoredResult.value(new byte[] {42}));
        waiters.forEach(waiter ->
                assertThat(waiter.orTimeout(1, TimeUnit.MINUTES).join()).isInstanceOf(Decision.Replay.class));
        assertEachCountsAs(IdempotenceEvent.REPLAYED);
    }

    @ParameterizedTest
    @EnumSource
    void responsesThatWereNotKept(Where where) {
        ClaimedExecution execution = run(where);
        threeWait();
        execution.finish(Verdict.KEEP, ClaimResult.noResult());
        assertRefused(Refusal.RESULT_UNAVAILABLE);
        assertEachCountsAs(IdempotenceEvent.REPLAYED);
    }

    @ParameterizedTest
    @EnumSource
    void unknownOutcomes(Where where) {
        ClaimedExecution execution = run(where);
        threeWait();
        CompletableFuture<Void> polls = new CompletableFuture<>();
        if (where == Where.HERE) {
            // One between the mark and the end of the wait would say so, too.
            storage.before((what, key) -> {
                if (what == FaultyStorage.Call.FIND) {
                    polls.join();
                }
            });
        }
        try (CapturedLog log = CapturedLog.of(Idempotence.class)) {
            execution.finish(Verdict.UNKNOWN, ClaimResult.noResult());
            assertRefused(Refusal.OUTCOME_UNKNOWN);
            // The process of the execution has said so. Another one says so too, once for all who waited there.
            assertThat(log.warnings())
                    .hasSize(where == Where.HERE ? 1 : 2)
                    .allMatch(warning -> warning.getFormattedMessage().startsWith("UNKNOWN: "));
        } finally {
            polls.complete(null);
        }
        if (where == Where.HERE) {
            // The execution itself, which was marked.
            await().until(() -> events.size() == 4);
            assertThat(events.remove(0)).isEqualTo(IdempotenceEvent.UNKNOWN);
        }
        assertEachCountsAs(IdempotenceEvent.UNKNOWN);
    }

    /** They were counted as in progress when they came. */
    @ParameterizedTest
    @EnumSource
    void releases(Where where) {
        ClaimedExecution execution = run(where);
        threeWait();
        execution.finish(Verdict.RELEASE, ClaimResult.noResult());
        assertRefused(Refusal.IN_PROGRESS);
        assertThat(events).isSubsetOf(IdempotenceEvent.RELEASED);
    }

    @Test
    void storageErrors() {
        run(Where.IN_ANOTHER_PROCESS);
        threeWait();
        storage.before((what, key) -> {
            throw new StorageUnavailableException("the storage does not respond", null);
        });
        assertRefused(Refusal.STORAGE_UNAVAILABLE);
        assertEachCountsAs(IdempotenceEvent.STORAGE_ERROR);
    }

    @Test
    @DisplayName("P6: a storage failure during a poll ends the wait")
    void errorsOfTheStorageAreStorageErrors() {
        run(Where.IN_ANOTHER_PROCESS);
        threeWait();
        storage.before((what, key) -> {
            throw new NoClassDefFoundError("a driver's class");
        });
        assertRefused(Refusal.STORAGE_UNAVAILABLE);
    }

    @ParameterizedTest
    @EnumSource
    @DisplayName("T4: a waiting duplicate is refused as key-reused if another request has its ID by now")
    void reusedKeys(Where where) {
        HeldLooks looks = new HeldLooks(storage);
        Idempotence first = where == Where.HERE ? idempotence : other;
        first.engine().claim(call, SHORT_LEASE);
        threeWait();
        byte[] bytes = new byte[Fingerprint.BYTES];
        Arrays.fill(bytes, (byte) 1);
        IdempotentCall another = IdempotentCall.of(call.id()).withFingerprint(Fingerprint.of(bytes));
        ClaimedExecution execution = looks.during(() -> {
            memory.delete(StorageKey.of("default", "", "", call.id()));
            return (ClaimedExecution) other.engine().claim(another, POLICY);
        });
        execution.finish(Verdict.KEEP, StoredResult.value(new byte[] {42}));
        assertRefused(Refusal.KEY_REUSED);
        await().untilAsserted(() -> assertThat(events)
                .filteredOn(event -> event == IdempotenceEvent.KEY_REUSED)
                .hasSize(3));
        assertOneWhoDoesNotWaitCountsAs(IdempotenceEvent.KEY_REUSED);
    }

    @Test
    void closingIsNoStorageError() {
        run(Where.IN_ANOTHER_PROCESS);
        threeWait();
        idempotence.close();
        assertRefused(Refusal.STORAGE_UNAVAILABLE);
        assertThat(events).isEmpty();
    }

    @Test
    void whoHasLeftIsNotCounted() {
        ClaimedExecution execution = run(Where.HERE);
        threeWait();
        waiters.get(0).cancel(false);
        execution.finish(Verdict.KEEP, StoredResult.value(new byte[] {42}));
        assertCounted(IdempotenceEvent.REPLAYED, IdempotenceEvent.REPLAYED);
    }
}
