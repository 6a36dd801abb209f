package io.idempotence.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.FailureRule;
import io.idempotence.IdempotenceId;
import io.idempotence.InboundRequest;
import io.idempotence.OnAbandoned;
import io.idempotence.http.Refusal;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.FaultyStorage.Call;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.MovingClock;
import io.idempotence.server.storage.RecordState;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** How an execution ends, and what its caller and the listener get, by a clock that does not move. */
class ClaimedExecutionTest {
    private static final byte[] OWN = StoredResult.value(new byte[] {1});
    private static final byte[] PAGE = StoredResult.value(new byte[] {3});
    private static final byte[] OTHER = StoredResult.value(new byte[] {2});
    private static final Duration LEASE = Duration.ofMinutes(6);
    private static final IdempotencePolicy POLICY = IdempotencePolicy.builder()
            .lease(LEASE)
            .onAbandoned(OnAbandoned.RE_EXECUTE)
            .build();

    private final MovingClock clock = new MovingClock();
    private final IdempotenceStorage memory = IdempotenceStorage.inMemory(100, clock);
    private final FaultyStorage storage = new FaultyStorage(memory);
    private final List<String> told = new CopyOnWriteArrayList<>();
    private final List<String> reasons = new CopyOnWriteArrayList<>();
    private final IdempotenceListener listener = new IdempotenceListener() {
        @Override
        public void onEvent(IdempotenceEvent event, IdempotenceId which) {
            told.add(event.toString());
        }

        @Override
        public void onReleased(IdempotenceId which, ReleaseReason reason) {
            reasons.add(reason.toString());
        }

        @Override
        public void onOverhead(Outcome outcome, long nanos) {
            told.add("overhead of " + outcome);
        }
    };
    private final Idempotence idempotence =
            Idempotence.builder(storage).listener(listener).build();
    private final IdempotenceId id = IdempotenceId.of("order-1");
    private final StorageKey key = StorageKey.of("default", "", "", id);

    @AfterEach
    void stop() {
        storage.before((call, which) -> {});
        idempotence.close();
    }

    private Decision claim() {
        return idempotence.engine().claim(IdempotentCall.of(id), POLICY);
    }

    private ClaimedExecution run() {
        return ((Decision.Run) claim()).execution();
    }

    private RecordState state() {
        return memory.find(key).orElseThrow().state();
    }

    private void fail(Call failing, RuntimeException failure) {
        storage.before((call, which) -> {
            if (call == failing) {
                throw failure;
            }
        });
    }

    private static Refusal refusal(Optional<Decision> decision) {
        return ((Decision.Refuse) decision.orElseThrow()).refusal();
    }

    @Test
    void describesItself() {
        ClaimedExecution execution = run();
        assertThat(execution.id()).isEqualTo(id);
        assertThat(execution.key()).isEqualTo(key);
        assertThat(execution.takenOver()).isFalse();
    }

    @Test
    void theHandlersCallsAreNoLongerPartOfItAfterwards() {
        Runnable leave = run().enter();
        assertThat(InboundRequest.current()).isPresent();
        leave.run();
        assertThat(InboundRequest.current()).isEmpty();
    }

    @Test
    void eachAttemptIsCountedAndTimedAsWhatItCameTo() {
        ClaimedExecution execution = run();
        claim();
        execution.finish(Verdict.KEEP, OWN);
        claim();
        assertThat(told)
                .containsExactly(
                        "CLAIMED",
                        "IN_PROGRESS",
                        "overhead of REFUSE",
                        "overhead of RUN",
                        "REPLAYED",
                        "overhead of REPLAY");
    }

    @Test
    void savedIdsAreCountedAsClaimedAndAsReplayed() {
        idempotence.saveIfAbsent(id);
        assertThat(told).containsExactly("CLAIMED");
        idempotence.saveIfAbsent(id);
        assertThat(told).containsExactly("CLAIMED", "REPLAYED");
    }

    @Test
    @DisplayName("every release is an event with its reason, and nothing else is")
    void everyReleaseIsReportedWithItsReason() {
        ClaimedExecution byStatus = run();
        byStatus.finish(byStatus.byStatus(503), OWN);
        ClaimedExecution byException = run();
        byException.finish(byException.byException(new IllegalStateException()), OWN);
        ClaimedExecution byHandler = run();
        byHandler.release();
        byHandler.finish(byHandler.byStatus(200), OWN);
        ClaimedExecution overtaken = run();
        overtaken.overtaken();
        overtaken.finish(overtaken.byStatus(500), OWN);
        assertThat(reasons).containsExactly("503", "IllegalStateException", "handler", "overtaken");
        assertThat(told).filteredOn("RELEASED"::equals).hasSize(4);

        ClaimedExecution late = run();
        memory.delete(key);
        late.finish(late.byStatus(503), OWN);
        ClaimedExecution kept = run();
        kept.finish(kept.byStatus(422), OWN);
        assertThat(reasons).hasSize(4);
    }

    @Test
    void aReleaseThatIsWrittenLaterIsReportedThen() {
        fail(Call.RELEASE, new StorageUnavailableException("the storage does not respond", null));
        ClaimedExecution execution = run();
        execution.finish(execution.byStatus(503), OWN);
        assertThat(reasons).isEmpty();
        storage.before((call, which) -> {});
        await().until(() -> reasons.equals(List.of("503")));
    }

    private ClaimedExecution strict() {
        IdempotencePolicy policy = IdempotencePolicy.builder()
                .failureRule(FailureRule.RELEASE_IF_NOTHING_TOOK_EFFECT)
                .build();
        return ((Decision.Run) idempotence.engine().claim(IdempotentCall.of(id), policy)).execution();
    }

    @Test
    @DisplayName("the strict rule: a handler that charges and then fails is not run again")
    void aHandlerThatTookEffectAndThenFailsIsNotRunAgain() {
        ClaimedExecution execution = strict();
        execution.finish(execution.byException(new IllegalStateException("cannot serialise the receipt")), OWN);
        assertThat(state()).isEqualTo(RecordState.UNKNOWN);
        assertThat(reasons).isEmpty();
    }

    @Test
    @DisplayName("the strict rule: what was rolled back runs again")
    void aFailureOfWhichNothingTookEffectIsReleased() {
        ClaimedExecution execution = strict();
        execution.nothingTookEffect();
        execution.finish(execution.byException(new IllegalStateException("deadlock")), OWN);
        assertThat(state()).isEqualTo(RecordState.RELEASED);
        assertThat(reasons).containsExactly("IllegalStateException");
    }

    @Test
    void aDeclarationIsWithdrawnByWhatMayTakeEffectLaterAndForGoodByWhatDid() {
        ClaimedExecution execution = strict();
        execution.nothingTookEffect();
        execution.applied();
        assertThat(execution.byStatus(500)).isEqualTo(Verdict.UNKNOWN);
        execution.nothingTookEffect();
        assertThat(execution.byStatus(500)).isEqualTo(Verdict.RELEASE);
        execution.tookEffect();
        execution.nothingTookEffect();
        assertThat(execution.byStatus(500)).isEqualTo(Verdict.UNKNOWN);
    }

    @Test
    void aDeclarationDecidesNothingButWhatWouldBeUnknown() {
        ClaimedExecution execution = strict();
        execution.nothingTookEffect();
        assertThat(execution.byStatus(201)).isEqualTo(Verdict.KEEP);
        assertThat(execution.byStatus(422)).isEqualTo(Verdict.KEEP);
        // A container that gave up says unknown itself: its handler may still be running.
        execution.finish(Verdict.UNKNOWN, OWN);
        assertThat(state()).isEqualTo(RecordState.UNKNOWN);
    }

    @Test
    @DisplayName(
            "P2: no rule and no later decision releases what took effect: a charge that fails afterwards is not run again")
    void whatTookEffectIsNeverReleased() {
        Map<String, Consumer<ClaimedExecution>> endings = Map.of(
                "200", execution -> execution.finish(execution.byStatus(200), OWN),
                "422", execution -> execution.finish(execution.byStatus(422), OWN),
                "429", execution -> execution.finish(execution.byStatus(429), OWN),
                "503", execution -> execution.finish(execution.byStatus(503), OWN),
                "exception",
                        execution -> execution.finish(execution.byException(new IllegalStateException("receipt")), OWN),
                "release()",
                        execution -> {
                            execution.release();
                            execution.finish(execution.byStatus(200), OWN);
                        },
                "overtaken()",
                        execution -> {
                            execution.overtaken();
                            execution.finish(execution.byStatus(500), OWN);
                        });
        for (FailureRule rule : FailureRule.values()) {
            IdempotencePolicy policy =
                    IdempotencePolicy.builder().failureRule(rule).build();
            endings.forEach((name, ending) -> {
                ending.accept(((Decision.Run) idempotence.engine().claim(IdempotentCall.of(id), policy)).execution());
                RecordState undeclared = state();
                memory.delete(key);

                ClaimedExecution tookEffect =
                        ((Decision.Run) idempotence.engine().claim(IdempotentCall.of(id), policy)).execution();
                tookEffect.tookEffect();
                ending.accept(tookEffect);
                assertThat(state())
                        .as("%s, %s, after tookEffect()", rule, name)
                        .isEqualTo(undeclared == RecordState.RELEASED ? RecordState.UNKNOWN : undeclared);
                memory.delete(key);

                ClaimedExecution none =
                        ((Decision.Run) idempotence.engine().claim(IdempotentCall.of(id), policy)).execution();
                none.nothingTookEffect();
                ending.accept(none);
                assertThat(state())
                        .as("%s, %s, after nothingTookEffect()", rule, name)
                        .isEqualTo(undeclared == RecordState.UNKNOWN ? RecordState.RELEASED : undeclared);
                memory.delete(key);
            });
        }
    }

    @Test
    void aReleaseThatContradictsItsEffectIsLogged() {
        try (CapturedLog log = CapturedLog.of(Idempotence.class)) {
            ClaimedExecution execution = run();
            execution.tookEffect();
            execution.release();
            execution.finish(execution.byStatus(200), OWN);
            assertThat(log.warnings())
                    .singleElement()
                    .satisfies(line -> assertThat(line.getFormattedMessage()).contains("declared that it took effect"));
        }
        assertThat(told).contains("UNKNOWN").doesNotContain("RELEASED");
    }

    @Test
    void aFailureIsRecordedAtOnceAndItsErrorPageReplacesItOnce() {
        ClaimedExecution execution = run();
        assertThat(execution.finishProvisionally(Verdict.KEEP, OWN)).isEmpty();
        assertThat(state()).isEqualTo(RecordState.COMPLETED);
        execution.settle();
        assertReplays(OWN);

        assertThat(execution.replace(PAGE)).isEmpty();
        assertReplays(PAGE);
        execution.replace(OWN);
        execution.finish(Verdict.RELEASE, OWN);
        assertReplays(PAGE);
        assertThat(told).filteredOn("overhead of RUN"::equals).hasSize(1);
    }

    @Test
    @DisplayName("P4: no caller gets a failure while its error page may still follow")
    void aFailureIsGivenToNobodyWhileItsErrorPageMayStillCome() {
        ClaimedExecution execution = run();
        List<Decision> during = new CopyOnWriteArrayList<>();
        storage.after((call, which) -> {
            if (call == Call.COMPLETE_PROVISIONALLY) {
                during.add(claim());
            }
        });
        execution.finishProvisionally(Verdict.KEEP, OWN);
        CompletableFuture<Decision> waiter =
                Duplicates.claim(idempotence, IdempotentCall.of(id), POLICY, Duration.ofMinutes(1));
        // The stack unwinds through the filters in front, and then the page begins.
        execution.settleSoon();
        during.add(claim());
        execution.hold();
        during.add(claim());
        assertThat(during)
                .hasSize(3)
                .allSatisfy(
                        decision -> assertThat(refusal(Optional.of(decision))).isEqualTo(Refusal.IN_PROGRESS));
        long finds = storage.count(Call.FIND);
        await("a look at what is held").until(() -> storage.count(Call.FIND) > finds + 1);
        assertThat(waiter).isNotDone();

        execution.replace(PAGE);
        assertReplays(PAGE);
        assertThat(waiter.join())
                .isInstanceOfSatisfying(
                        Decision.Replay.class,
                        replay -> assertThat(replay.result()).isEqualTo(PAGE));
        execution.hold();
        assertReplays(PAGE);
    }

    @Test
    void aFailureThatNoErrorPageFollowsIsGivenToDuplicatesSoon() {
        ClaimedExecution execution = run();
        execution.finishProvisionally(Verdict.KEEP, OWN);
        execution.settleSoon();
        assertThat(refusal(Optional.of(claim()))).isEqualTo(Refusal.IN_PROGRESS);
        await().until(() -> claim() instanceof Decision.Replay);
        assertReplays(OWN);
    }

    @Test
    void whatIsNotKeptProvisionallyIsNeverReplaced() {
        ClaimedExecution released = run();
        released.finishProvisionally(Verdict.RELEASE, OWN);
        released.replace(PAGE);
        assertThat(state()).isEqualTo(RecordState.RELEASED);

        ClaimedExecution kept = run();
        kept.finish(Verdict.KEEP, OWN);
        kept.replace(PAGE);
        assertReplays(OWN);
    }

    @Test
    @DisplayName("T22: an error page replaces a failure whose record is still pending, whichever is written first")
    void anErrorPageReplacesAFailureWhoseRecordIsStillPending() {
        for (Call lost : List.of(Call.COMPLETE_PROVISIONALLY, Call.COMPLETE)) {
            fail(Call.COMPLETE_PROVISIONALLY, new StorageUnavailableException("the storage does not respond", null));
            ClaimedExecution execution = run();
            execution.finishProvisionally(Verdict.KEEP, OWN);
            assertThat(state()).isEqualTo(RecordState.IN_PROGRESS);
            fail(lost, new StorageUnavailableException("the storage does not respond", null));
            execution.replace(PAGE);
            // Now the one of them that is not lost is made, and then the other.
            long made = storage.count(Call.COMPLETE) + storage.count(Call.COMPLETE_PROVISIONALLY);
            await().until(() -> storage.count(Call.COMPLETE) + storage.count(Call.COMPLETE_PROVISIONALLY) > made + 1);
            storage.before((call, which) -> {});

            await().untilAsserted(() -> assertReplays(PAGE));
            memory.delete(key);
        }
    }

    @Test
    @DisplayName("T14: the page of a late owner never replaces the result of the one that overtook it")
    void theErrorPageOfALateOwnerReplacesNothing() {
        ClaimedExecution late = run();
        clock.advance(LEASE);
        late.finishProvisionally(Verdict.KEEP, OWN);
        memory.delete(key);
        run().finish(Verdict.KEEP, OTHER);

        assertThat(late.replace(PAGE)).contains(new Decision.Replay(OTHER));
        assertReplays(OTHER);
        assertThat(told).filteredOn("FENCED"::equals).hasSize(1);
    }

    @Test
    void resultOfTheOwnerThatTookOverIsNotHeldBack() {
        ClaimedExecution late = run();
        memory.delete(key);
        run().finish(Verdict.KEEP, OTHER);

        assertThat(late.finishProvisionally(Verdict.KEEP, OWN)).contains(new Decision.Replay(OTHER));
        assertReplays(OTHER);
    }

    private void assertReplays(byte[] result) {
        assertThat(claim())
                .isInstanceOfSatisfying(
                        Decision.Replay.class,
                        replay -> assertThat(replay.result()).isEqualTo(result));
    }

    @Test
    void aResultThatIsTooLargeIsReported() {
        ClaimedExecution execution = run();
        told.clear();
        execution.oversize();
        assertThat(told).containsExactly("OVERSIZE");
    }

    @Test
    @DisplayName("T9: a renewal that failed is due again after a sixth of the lease")
    void aFailedRenewalIsDueAgainSoon() {
        ClaimedExecution execution = run();
        long before = System.nanoTime();
        assertThat(execution
                        .lease()
                        .isRenewalDue(
                                before + LEASE.dividedBy(3).minusSeconds(50).toNanos()))
                .isFalse();
        assertThat(execution.lease().isRenewalDue(before + LEASE.dividedBy(3).toNanos()))
                .isTrue();
        execution.lease().renewalFailed(new IllegalStateException("for the test"));
        long after = System.nanoTime();
        assertThat(execution.lease().isRenewalInTrouble()).isTrue();
        assertThat(execution.lease().isRenewalDue(before + LEASE.dividedBy(6).toNanos() - 1))
                .isFalse();
        assertThat(execution.lease().isRenewalDue(after + LEASE.dividedBy(6).toNanos()))
                .isTrue();
        execution.lease().renew();
        assertThat(execution.lease().isRenewalInTrouble()).isFalse();
    }

    @Test
    @DisplayName("T16: a lost record is reported once")
    void aLostRecordAlarmsOnce() {
        ClaimedExecution execution = run();
        memory.delete(key);
        told.clear();
        execution.lease().renew();
        assertThat(told).containsExactly("LOST");
        execution.finish(Verdict.KEEP, OWN);
        assertThat(told).containsExactly("LOST", "overhead of RUN");
        assertThat(state()).isEqualTo(RecordState.COMPLETED);
    }

    @Test
    @DisplayName("T20: a damaged record is reported when it is renewed and when it is completed")
    void aDamagedRecordIsReportedAndNotWritten() {
        ClaimedExecution execution = run();
        told.clear();
        fail(Call.RENEW, new CorruptRecordException("somebody wrote over it"));
        execution.lease().renew();
        assertThat(told).containsExactly("STORAGE_ERROR");
        fail(Call.COMPLETE, new CorruptRecordException("somebody wrote over it"));
        assertThat(execution.finish(Verdict.KEEP, OWN)).isEmpty();
        assertThat(told).containsExactly("STORAGE_ERROR", "STORAGE_ERROR", "overhead of RUN");
        idempotence.close();
        assertThat(storage.count(Call.COMPLETE)).isEqualTo(1);
    }

    // ---- taken over

    /** The first execution has broken off, what it did is not known; another one runs. */
    private ClaimedExecution takenOver() {
        run();
        clock.advance(LEASE);
        return run();
    }

    private ClaimedExecution next() {
        assertThat(refusal(Optional.of(claim()))).isEqualTo(Refusal.IN_PROGRESS);
        clock.advance(Duration.ofMillis(1));
        return run();
    }

    @Test
    @DisplayName(
            "T7: after a take-over that its policy releases the next one is a take-over: what was first done is not known")
    void aTakeOverThatFailsIsFollowedByATakeOver() throws Exception {
        ClaimedExecution second = takenOver();
        CompletableFuture<Decision> waiter =
                Duplicates.claim(idempotence, IdempotentCall.of(id), POLICY, Duration.ofMinutes(5));
        assertThat(second.finish(Verdict.RELEASE, OWN)).isEmpty();
        assertThat(refusal(Optional.of(waiter.orTimeout(20, TimeUnit.SECONDS).join())))
                .isEqualTo(Refusal.IN_PROGRESS);

        ClaimedExecution third = next();
        assertThat(third.takenOver()).isTrue();
        assertThat(third.fence()).isEqualTo(3);
        third.overtaken();
        assertThat(third.finish(Verdict.KEEP, OWN)).isPresent();

        ClaimedExecution fourth = next();
        assertThat(fourth.takenOver()).isTrue();
        fourth.finish(Verdict.KEEP, OWN);
        assertThat(state()).isEqualTo(RecordState.COMPLETED);
        assertThat(told).doesNotContain("FENCED", "LOST", "STORAGE_ERROR");
    }

    @Test
    void aHandlerThatDeclaresThatNothingTookEffectReleasesATakeOver() {
        ClaimedExecution second = takenOver();
        second.release();
        second.finish(Verdict.KEEP, OWN);
        assertThat(state()).isEqualTo(RecordState.RELEASED);
        assertThat(run().takenOver()).isFalse();
    }

    @Test
    void aRenewalThatIsLateDoesNotRenewALeaseThatWasEnded() {
        ClaimedExecution second = takenOver();
        second.finish(Verdict.RELEASE, OWN);
        second.lease().renew();
        assertThat(next().takenOver()).isTrue();
    }

    @Test
    @DisplayName("T21: a take-over whose replies are lost is given back as it was found")
    void aTakeOverInVainIsFollowedByATakeOver() {
        run();
        clock.advance(LEASE);
        storage.after((call, which) -> {
            if (call == Call.CLAIM) {
                throw new StorageUnavailableException("the storage does not respond", null);
            }
        });
        assertThat(refusal(Optional.of(claim()))).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        long renewals = storage.count(Call.RENEW);
        storage.after((call, which) -> {});
        await().until(() -> storage.count(Call.RENEW) + storage.count(Call.RELEASE) > renewals);
        idempotence.close();
        clock.advance(Duration.ofMillis(1));
        try (Idempotence other = Idempotence.over(memory)) {
            Decision.Run run = (Decision.Run) other.engine().claim(IdempotentCall.of(id), POLICY);
            assertThat(run.execution().takenOver()).isTrue();
            assertThat(run.execution().fence()).isEqualTo(3);
        }
    }

    @Test
    void theHandlerLearnsTheNumberOfItsAttempt() throws Exception {
        IdempotentCall call = IdempotentCall.of("charge", id);
        Idempotence.Work<String> work = execution -> "attempt " + execution.attempt();
        assertThat(idempotence.execute(call.withAttempt(3).withScope("acme"), POLICY, ResultCodec.text(), work))
                .isEqualTo("attempt 3");
        assertThat(idempotence.execute(call, POLICY, ResultCodec.text(), work)).isEqualTo("attempt 1");
        // It is the same call still.
        assertThat(idempotence.execute(call.withAttempt(2), POLICY, ResultCodec.text(), work))
                .isEqualTo("attempt 1");
        assertThatThrownBy(() -> call.withAttempt(0)).isInstanceOf(IllegalArgumentException.class);
    }

    // ---- overtaken

    private ClaimedExecution overtaken() {
        ClaimedExecution late = run();
        clock.advance(LEASE);
        return late;
    }

    @Test
    @DisplayName("T14: a late owner's failure is replaced by its successor's outcome, its success only by a result")
    void aLateFailureGivesWay() {
        ClaimedExecution late = overtaken();
        ClaimedExecution successor = run();
        assertThat(successor.takenOver()).isTrue();
        assertThat(late.finish(Verdict.RELEASE, OWN)).as("nothing to give yet").isEmpty();
        assertThat(told).contains("TAKE_OVER", "FENCED");
        assertThat(state()).isEqualTo(RecordState.IN_PROGRESS);
        clock.advance(LEASE);
        ClaimedExecution last = run();
        last.finish(Verdict.KEEP, StoredResult.unavailable());
        assertThat(refusal(successor.finish(Verdict.RELEASE, OWN))).isEqualTo(Refusal.RESULT_UNAVAILABLE);
    }

    @Test
    void aLateSuccessGivesWayToAResult() {
        ClaimedExecution late = overtaken();
        run().finish(Verdict.KEEP, OTHER);
        assertThat(late.finish(Verdict.KEEP, OWN))
                .hasValueSatisfying(instead ->
                        assertThat(((Decision.Replay) instead).result()).isEqualTo(OTHER));
    }

    @Test
    @DisplayName("an overtaken execution is refused as in progress even if the storage fails")
    void anOvertakenExecutionIsRefusedAsInProgress() {
        ClaimedExecution execution = run();
        fail(Call.RELEASE, new StorageUnavailableException("the storage does not respond", null));
        execution.overtaken();
        assertThat(refusal(execution.finish(Verdict.KEEP, OWN))).isEqualTo(Refusal.IN_PROGRESS);
        assertThat(execution.finish(Verdict.KEEP, OWN))
                .as("the first call counts")
                .isEmpty();
        storage.before((call, which) -> {});
        await().until(() -> state() == RecordState.RELEASED);
    }

    @Test
    @DisplayName("T14: work that fails late gets its successor's result; an error of the machine is not hidden by it")
    void workThatFailsLateGetsTheResultOfItsSuccessor() throws Exception {
        Idempotence other = Idempotence.builder(memory).policy(POLICY).build();
        assertThat(idempotence.execute(id, () -> {
                    clock.advance(LEASE);
                    other.execute(id, () -> "theirs");
                    throw new IllegalStateException("down");
                }))
                .isEqualTo("theirs");
        IdempotenceId second = IdempotenceId.of("order-2");
        assertThatThrownBy(() -> idempotence.execute(second, () -> {
                    clock.advance(LEASE);
                    other.execute(second, () -> "theirs");
                    throw new StackOverflowError();
                }))
                .isInstanceOf(StackOverflowError.class);
        other.close();
    }

    @Test
    @DisplayName("T12: a release whose reply is lost is no overlap: any execution since then began after it")
    void aReleaseWhoseReplyGetsLostAlarmsNobody() {
        ClaimedExecution first = run();
        storage.after((call, which) -> {
            if (call == Call.RELEASE && storage.count(Call.RELEASE) == 1) {
                throw new StorageUnavailableException("the storage does not respond", null);
            }
        });
        first.finish(Verdict.RELEASE, OWN);
        ClaimedExecution second = run();
        await().until(() -> storage.count(Call.RELEASE) == 2);
        second.finish(Verdict.KEEP, OWN);
        idempotence.close();
        assertThat(told)
                .containsExactlyInAnyOrder(
                        "CLAIMED", "STORAGE_ERROR", "overhead of RUN", "CLAIMED", "RELEASED", "overhead of RUN");
    }

    @Test
    @DisplayName("T14: a release whose reply is lost is an overlap if the lease was over when the handler ended")
    void aLateReleaseWhoseCallGetsLostAlarms() {
        IdempotencePolicy brief = IdempotencePolicy.builder()
                .lease(Duration.ofMillis(10))
                .onAbandoned(OnAbandoned.RE_EXECUTE)
                .build();
        fail(Call.RENEW, new StorageUnavailableException("the storage does not respond", null));
        ClaimedExecution late = ((Decision.Run) idempotence.engine().claim(IdempotentCall.of(id), brief)).execution();
        await().until(() -> late.lease().mayBeOver());
        clock.advance(LEASE);
        run();
        fail(Call.RELEASE, new StorageUnavailableException("the storage does not respond", null));
        late.finish(Verdict.RELEASE, OWN);
        storage.before((call, which) -> {});
        await().until(() -> told.contains("FENCED"));
    }

    // ---- refusals

    @Test
    @DisplayName("a duplicate may retry after half of the time that the first attempt has run, 20 to 500 ms")
    void whenToAskAgain() {
        run();
        for (long[] each : new long[][] {{0, 20}, {40, 20}, {42, 21}, {1_000, 500}, {1_002, 500}, {100_000, 500}}) {
            MovingClock start = new MovingClock();
            Duration ran = Duration.between(start.instant(), clock.instant());
            clock.advance(Duration.ofMillis(each[0]).minus(ran));
            assertThat(((Decision.Refuse) claim()).retryAfter())
                    .as("after %d ms", each[0])
                    .isEqualTo(Duration.ofMillis(each[1]));
        }
    }

    @Test
    @DisplayName("T4: another request under the same ID is refused and counted")
    void anotherRequestIsRefused() {
        run();
        told.clear();
        byte[] bytes = new byte[Fingerprint.BYTES];
        bytes[0] = 1;
        Decision decision =
                idempotence.engine().claim(IdempotentCall.of(id).withFingerprint(Fingerprint.of(bytes)), POLICY);
        assertThat(refusal(Optional.of(decision))).isEqualTo(Refusal.KEY_REUSED);
        assertThat(told).containsExactly("MISMATCH", "overhead of REFUSE");
    }
}
