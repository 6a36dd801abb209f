package io.idempotence.server;

import static io.idempotence.server.AttemptsAtOneId.ID;
import static io.idempotence.server.AttemptsAtOneId.KEY;
import static io.idempotence.server.AttemptsAtOneId.LEASE;
import static io.idempotence.server.AttemptsAtOneId.OTHER;
import static io.idempotence.server.AttemptsAtOneId.OWN;
import static io.idempotence.server.AttemptsAtOneId.PAGE;
import static io.idempotence.server.AttemptsAtOneId.POLICY;
import static io.idempotence.server.AttemptsAtOneId.refusal;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.http.Refusal;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.storage.FaultyStorage.Call;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Failures that an error page may still follow: how they are recorded, and whether a caller gets the failure or the page. */
class ErrorPageTest {
    @RegisterExtension
    private final AttemptsAtOneId attempts = new AttemptsAtOneId();

    @Test
    void aFailureIsRecordedAtOnceAndItsErrorPageReplacesItOnce() {
        ClaimedExecution execution = attempts.run();
        assertThat(execution.finishProvisionally(Verdict.KEEP, OWN)).isEmpty();
        assertThat(attempts.state()).isEqualTo(State.COMPLETED);
        execution.settle();
        attempts.assertReplays(OWN);

        assertThat(execution.replace(PAGE)).isEmpty();
        attempts.assertReplays(PAGE);
        execution.replace(OWN);
        execution.finish(Verdict.RELEASE, OWN);
        attempts.assertReplays(PAGE);
        assertThat(attempts.told).filteredOn("overhead of RUN"::equals).hasSize(1);
    }

    @Test
    @DisplayName("P4: no caller gets a failure while its error page may still follow")
    void aFailureIsGivenToNobodyWhileItsErrorPageMayStillCome() {
        ClaimedExecution execution = attempts.run();
        List<Decision> during = new CopyOnWriteArrayList<>();
        attempts.storage.after((call, which) -> {
            if (call == Call.COMPLETE_PROVISIONALLY) {
                during.add(attempts.claim());
            }
        });
        execution.finishProvisionally(Verdict.KEEP, OWN);
        CompletableFuture<Decision> waiter =
                Duplicates.claim(attempts.idempotence, IdempotentCall.of(ID), POLICY, Duration.ofMinutes(1));
        // The stack unwinds through the filters in front, and then the page begins.
        long begin = System.nanoTime();
        execution.settleSoon();
        during.add(attempts.claim());
        execution.hold();
        assumeThatTheMachineDidNotPauseSince(begin);
        during.add(attempts.claim());
        assertThat(during)
                .hasSize(3)
                .allSatisfy(
                        decision -> assertThat(refusal(Optional.of(decision))).isEqualTo(Refusal.IN_PROGRESS));
        long finds = attempts.storage.count(Call.FIND);
        await("a look at what is held").until(() -> attempts.storage.count(Call.FIND) > finds + 1);
        assertThat(waiter).isNotDone();

        execution.replace(PAGE);
        attempts.assertReplays(PAGE);
        assertThat(waiter.join())
                .isInstanceOfSatisfying(
                        Decision.Replay.class,
                        replay -> assertThat(replay.result()).isEqualTo(PAGE));
        execution.hold();
        attempts.assertReplays(PAGE);
    }

    @Test
    void aFailureThatNoErrorPageFollowsIsGivenToDuplicatesSoon() {
        ClaimedExecution execution = attempts.run();
        execution.finishProvisionally(Verdict.KEEP, OWN);
        long begin = System.nanoTime();
        execution.settleSoon();
        Decision early = attempts.claim();
        assumeThatTheMachineDidNotPauseSince(begin);
        assertThat(refusal(Optional.of(early))).isEqualTo(Refusal.IN_PROGRESS);
        await().until(() -> attempts.claim() instanceof Decision.Replay);
        attempts.assertReplays(OWN);
    }

    @Test
    void whatIsNotKeptProvisionallyIsNeverReplaced() {
        ClaimedExecution released = attempts.run();
        released.finishProvisionally(Verdict.RELEASE, OWN);
        released.replace(PAGE);
        assertThat(attempts.state()).isEqualTo(State.RELEASED);

        ClaimedExecution kept = attempts.run();
        kept.finish(Verdict.KEEP, OWN);
        kept.replace(PAGE);
        attempts.assertReplays(OWN);
    }

    /** The product gives a failure away a second after it may be settled. */
    private static void assumeThatTheMachineDidNotPauseSince(long begin) {
        assumeThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(1));
    }

    private long completions() {
        return attempts.storage.count(Call.COMPLETE) + attempts.storage.count(Call.COMPLETE_PROVISIONALLY);
    }

    @Test
    @DisplayName("T22: an error page replaces a failure whose record is still pending, whichever is written first")
    void anErrorPageReplacesAFailureWhoseRecordIsStillPending() {
        for (Call lost : List.of(Call.COMPLETE_PROVISIONALLY, Call.COMPLETE)) {
            attempts.fail(
                    Call.COMPLETE_PROVISIONALLY, new StorageUnavailableException("the storage does not respond", null));
            ClaimedExecution execution = attempts.run();
            execution.finishProvisionally(Verdict.KEEP, OWN);
            assertThat(attempts.state()).isEqualTo(State.IN_PROGRESS);
            attempts.fail(lost, new StorageUnavailableException("the storage does not respond", null));
            execution.replace(PAGE);
            // Now the one of them that is not lost is made, and then the other.
            long made = completions();
            await().until(() -> completions() > made + 1);
            attempts.storage.before((call, which) -> {});

            await().untilAsserted(() -> attempts.assertReplays(PAGE));
            attempts.memory.delete(KEY);
        }
    }

    @Test
    @DisplayName("T14: the page of a late owner never replaces the result of the one that overtook it")
    void theErrorPageOfALateOwnerReplacesNothing() {
        ClaimedExecution late = attempts.run();
        attempts.clock.advance(LEASE);
        late.finishProvisionally(Verdict.KEEP, OWN);
        attempts.memory.delete(KEY);
        attempts.run().finish(Verdict.KEEP, OTHER);

        assertThat(late.replace(PAGE)).contains(new Decision.Replay(OTHER));
        attempts.assertReplays(OTHER);
        assertThat(attempts.told).filteredOn("FENCED"::equals).hasSize(1);
    }

    @Test
    void resultOfTheOwnerThatTookOverIsNotHeldBack() {
        ClaimedExecution late = attempts.run();
        attempts.memory.delete(KEY);
        attempts.run().finish(Verdict.KEEP, OTHER);

        assertThat(late.finishProvisionally(Verdict.KEEP, OWN)).contains(new Decision.Replay(OTHER));
        attempts.assertReplays(OTHER);
    }
}
