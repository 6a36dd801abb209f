package io.idempotence.server;

import static io.idempotence.server.Refusals.refusalOf;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.turbo.TurboFilter;
import ch.qos.logback.core.spi.FilterReply;
import io.idempotence.IdempotenceId;
import io.idempotence.OnAbandoned;
import io.idempotence.http.Refusal;
import io.idempotence.server.storage.ClaimRequest;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.FaultyStorage.Call;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.RecordState;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;
import org.slf4j.Marker;

/** What becomes of executions when single calls of the storage fail, or their replies get lost. */
class StorageTroubleTest {
    private static final IdempotencePolicy SHORT_LEASE = IdempotencePolicy.builder()
            .lease(Duration.ofMillis(60))
            .onAbandoned(OnAbandoned.RE_EXECUTE)
            .build();

    private final IdempotenceStorage memory = IdempotenceStorage.inMemory();
    private final FaultyStorage storage = new FaultyStorage(memory);
    private final IdempotenceId id = IdempotenceId.of("order-1");
    private final StorageKey key = key("order-1");
    private final List<IdempotenceEvent> events = new CopyOnWriteArrayList<>();
    private final AtomicInteger runs = new AtomicInteger();
    private final List<Idempotence> open = new ArrayList<>();

    @AfterEach
    void close() {
        storage.before((call, which) -> {}).after((call, which) -> {});
        open.forEach(Idempotence::close);
    }

    private static StorageKey key(String id) {
        return StorageKey.of("default", "", "execute", IdempotenceId.of(id));
    }

    private static StorageUnavailableException unavailable() {
        return new StorageUnavailableException("the storage does not respond", null);
    }

    private Idempotence over(IdempotenceStorage any, IdempotencePolicy policy) {
        Idempotence idempotence = Idempotence.builder(any)
                .policy(policy)
                .listener((event, which) -> events.add(event))
                .build();
        open.add(idempotence);
        return idempotence;
    }

    private Idempotence idempotence(IdempotencePolicy policy) {
        return over(storage, policy);
    }

    private Idempotence idempotence() {
        return idempotence(IdempotencePolicy.defaults());
    }

    private String work() {
        return "run " + runs.incrementAndGet();
    }

    private Refusal refusal(Idempotence idempotence) {
        return refusalOf(() -> idempotence.execute(id, this::work));
    }

    // ---- leases

    @Test
    @DisplayName("T9: a record that cannot be renewed costs the others nothing")
    void oneFailingRecordDoesNotStopTheRenewalOfOthers() {
        assertOthersAreRenewed(20, () -> {
            throw new IllegalStateException("this record is broken");
        });
    }

    @Test
    @DisplayName("T9: records whose renewal hangs, as on a dead shard, cost the others nothing")
    void renewalsThatHangDoNotStopTheRenewalOfOthers() {
        CountDownLatch over = new CountDownLatch(1);
        try {
            assertOthersAreRenewed(24, () -> awaitForEver(over));
        } finally {
            over.countDown();
        }
    }

    /**
     * Every second record meets the trouble when it is renewed. In whatever order they are looked at, some good ones come after a
     * bad one.
     */
    private void assertOthersAreRenewed(int records, Runnable trouble) {
        Idempotence idempotence = idempotence(SHORT_LEASE);
        Map<StorageKey, AtomicInteger> renewals = new ConcurrentHashMap<>();
        storage.before((call, which) -> {
            AtomicInteger ofThis = renewals.get(which);
            if (call == Call.RENEW && ofThis == null) {
                trouble.run();
            } else if (call == Call.RENEW) {
                ofThis.incrementAndGet();
            }
        });
        for (int i = 0; i < records; i++) {
            IdempotenceId each = IdempotenceId.of("each-" + i);
            if (i % 2 == 0) {
                renewals.put(StorageKey.of("default", "", "", each), new AtomicInteger());
            }
            idempotence.engine().claim(IdempotentCall.of(each), SHORT_LEASE);
        }
        await().until(() -> renewals.values().stream().allMatch(number -> number.get() >= 5));
    }

    private static void awaitForEver(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    @DisplayName("T14, P4: waiting duplicates get the result of the execution that overtook a late owner")
    void theResultOfAFencedOwnerIsNobodysResponse() {
        storage.withoutRenewals();
        Idempotence late = idempotence(SHORT_LEASE);
        Idempotence other = over(
                memory,
                IdempotencePolicy.builder().onAbandoned(OnAbandoned.RE_EXECUTE).build());
        IdempotentCall call = IdempotentCall.of(id);
        ClaimedExecution overtaken = ((Decision.Run) late.engine().claim(call, SHORT_LEASE)).execution();
        AtomicReference<ClaimedExecution> successor = new AtomicReference<>();
        await().until(() -> {
            if (other.engine().claim(call, other.policy()) instanceof Decision.Run run) {
                successor.set(run.execution());
            }
            return successor.get() != null;
        });
        CompletableFuture<Decision> waiter = Duplicates.claim(late, call, SHORT_LEASE, Duration.ofMinutes(5));
        assertThat(waiter).isNotDone();

        assertThat(overtaken.finish(Verdict.KEEP, StoredResult.value(new byte[] {1})))
                .isEmpty();

        successor.get().finish(Verdict.KEEP, StoredResult.value(new byte[] {2}));
        assertThat(waiter.orTimeout(20, TimeUnit.SECONDS).join())
                .isInstanceOfSatisfying(
                        Decision.Replay.class,
                        replay -> assertThat(replay.result()).isEqualTo(StoredResult.value(new byte[] {2})));
    }

    @Test
    @DisplayName(
            "T21: a claim that its storage refused and could not give back is given back later, and not claimed again")
    void aClaimThatItsStorageCouldNotGiveBackIsGivenBackLater() {
        storage.after((call, which) -> {
            if (call == FaultyStorage.Call.CLAIM && storage.count(call) == 1) {
                throw StorageUnavailableException.givingBack("too few replicas", null, false);
            }
        });
        Idempotence idempotence = idempotence();
        assertThat(refusal(idempotence)).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        await().ignoreExceptionsInstanceOf(ExecutionRefusedException.class)
                .until(() -> idempotence.execute(id, this::work).equals("run 1"));
        assertThat(runs).hasValue(1);
    }

    @Test
    @DisplayName("T21: a claim that its storage refused and gave back is not claimed again")
    void aClaimThatItsStorageGaveBackIsNotAskedForAgain() {
        storage.after((call, which) -> {
            if (call == FaultyStorage.Call.CLAIM) {
                throw StorageUnavailableException.givingBack("too few replicas", null, true);
            }
        });
        assertThatThrownBy(() -> idempotence().saveIfAbsent(id)).isInstanceOf(StorageUnavailableException.class);
        assertThat(storage.count(FaultyStorage.Call.CLAIM)).isEqualTo(1);
    }

    @Test
    @DisplayName("an ID that was saved although no reply came is not called seen: it is given back")
    void anIdSavedInVainIsGivenBack() {
        AtomicBoolean repliesLost = new AtomicBoolean(true);
        storage.after((call, which) -> {
            if (call == Call.CLAIM && repliesLost.get()) {
                throw unavailable();
            }
        });
        Idempotence idempotence = idempotence();
        assertThatThrownBy(() -> idempotence.saveIfAbsent(id)).isInstanceOf(StorageUnavailableException.class);
        assertThat(events).containsExactly(IdempotenceEvent.STORAGE_ERROR);
        repliesLost.set(false);
        // A message that is delivered again: either not yet, or now; never "seen before".
        AtomicBoolean saved = new AtomicBoolean();
        await().until(() -> {
            try {
                assertThat(idempotence.saveIfAbsent(id)).isTrue();
                saved.set(true);
            } catch (StorageUnavailableException e) {
                assertThat(e).hasMessageContaining("is being released");
            }
            return saved.get();
        });
        assertThat(idempotence.saveIfAbsent(id)).isFalse();
    }

    /** The thread of the give-backs waits for one to become due. */
    private static boolean nothingIsGivenBack() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().equals("idempotence-give-backs"))
                .allMatch(thread -> thread.getState() == Thread.State.TIMED_WAITING);
    }

    @Test
    void anIdThatIsGivenBackWhileItIsAskedForIsNotCalledSeen() {
        AtomicInteger claims = new AtomicInteger();
        storage.after((call, which) -> {
            if (call == Call.CLAIM && claims.incrementAndGet() <= 2) {
                throw unavailable();
            }
            if (call == Call.CLAIM && Thread.currentThread().getName().equals("redelivery")) {
                // The reply "it is there" is under way while the ID is given back.
                await().until(() -> memory.find(RecordKind.SAVE.key("default", IdempotentCall.of(id)))
                                .map(IdempotenceRecord::state)
                                .orElse(RecordState.RELEASED)
                        == RecordState.RELEASED);
                await().until(StorageTroubleTest::nothingIsGivenBack);
            }
        });
        Idempotence idempotence = idempotence();
        assertThatThrownBy(() -> idempotence.saveIfAbsent(id)).isInstanceOf(StorageUnavailableException.class);
        CompletableFuture<Object> reply = new CompletableFuture<>();
        new Thread(
                        () -> {
                            try {
                                reply.complete(idempotence.saveIfAbsent(id));
                            } catch (StorageUnavailableException e) {
                                reply.complete(e);
                            }
                        },
                        "redelivery")
                .start();
        assertThat(reply.orTimeout(20, TimeUnit.SECONDS).join()).isNotEqualTo(false);
    }

    @Test
    @DisplayName("T22: a completion that waits for the storage keeps its claim until it is written")
    void aPendingCompletionKeepsItsLease() throws Exception {
        AtomicBoolean down = new AtomicBoolean(true);
        storage.before((call, which) -> {
            if (call == Call.COMPLETE && down.get()) {
                throw unavailable();
            }
        });
        IdempotencePolicy policy = IdempotencePolicy.builder()
                .lease(Duration.ofMillis(600)) // a machine that does much else must not let it run out
                .onAbandoned(OnAbandoned.RE_EXECUTE)
                .build();
        assertThat(idempotence(policy).execute(id, this::work)).isEqualTo("run 1");

        long renewals = storage.count(Call.RENEW);
        Idempotence other = over(memory, policy);
        await().until(() -> {
            assertThat(refusal(other)).isEqualTo(Refusal.IN_PROGRESS);
            return storage.count(Call.RENEW) >= renewals + 5;
        });
        down.set(false);
        await().until(() -> memory.find(key).orElseThrow().state() == RecordState.COMPLETED);

        assertThat(other.execute(id, this::work)).isEqualTo("run 1");
        assertThat(runs).hasValue(1);
    }

    @Test
    @DisplayName("T14: a late owner whose overtaker's result was not kept gives its own")
    void aLateOwnerIsNotGivenAResultThatWasNotKept() throws Exception {
        storage.withoutRenewals();
        Idempotence other = over(memory, SHORT_LEASE);
        ResultCodec<String> failing = ResultCodec.of(
                text -> {
                    throw new IllegalStateException("cannot be encoded");
                },
                bytes -> "never");

        String late = idempotence(SHORT_LEASE).execute(id, () -> {
            String own = work();
            await().until(() -> memory.find(key).orElseThrow().state() == RecordState.ABANDONED);
            assertThatThrownBy(() -> other.execute(id, failing, this::work)).hasMessage("cannot be encoded");
            return own;
        });

        assertThat(late).isEqualTo("run 1");
        assertThat(events).contains(IdempotenceEvent.FENCED);
    }

    // ---- releases

    private static String failing() {
        throw new IllegalStateException("the card service is down");
    }

    /** The next release is executed, and its reply is lost after others have acted. */
    private void loseTheReplyToARelease(Runnable others) {
        AtomicBoolean lost = new AtomicBoolean();
        storage.after((call, which) -> {
            if (call == Call.RELEASE && lost.compareAndSet(false, true)) {
                others.run();
                throw unavailable();
            }
        });
    }

    @Test
    void aReleaseWhoseReplyWasLostIsReportedAsOneAlthoughTheNextAttemptHasRun() throws Exception {
        Idempotence other = over(memory, IdempotencePolicy.defaults());
        loseTheReplyToARelease(
                () -> assertThatCode(() -> other.execute(id, this::work)).doesNotThrowAnyException());

        assertThatThrownBy(() -> idempotence().execute(id, StorageTroubleTest::failing))
                .hasMessage("the card service is down");

        await().until(() -> events.contains(IdempotenceEvent.RELEASED));
        assertThat(events).doesNotContain(IdempotenceEvent.FENCED, IdempotenceEvent.LOST);
        assertThat(runs).hasValue(1);
    }

    @Test
    void aReleaseThatMeetsTheNewClaimOfAVanishedRecordIsAnAlarmWhateverRepliesWereLost() {
        AtomicBoolean lost = new AtomicBoolean();
        storage.before((call, which) -> {
            if (call == Call.RELEASE && lost.compareAndSet(false, true)) {
                memory.delete(which);
                Claims.claim(memory, which);
                throw unavailable();
            }
        });

        assertThatThrownBy(() -> idempotence().execute(id, StorageTroubleTest::failing))
                .hasMessage("the card service is down");

        await().until(() -> events.contains(IdempotenceEvent.FENCED));
        assertThat(events).doesNotContain(IdempotenceEvent.RELEASED);
    }

    // ---- claims

    /** Whether a lease is over by its owner's clock, too: the storage's counts whole milliseconds. */
    private boolean isOver(StorageKey key) {
        return memory.find(key).orElseThrow().leaseLeft().toMillis() < 0;
    }

    @Test
    @DisplayName("P2: a claim whose reply comes after its lease runs nothing if another one has taken over")
    void aClaimWhoseReplyIsTooLateIsAskedAgain() {
        CountDownLatch overtaken = new CountDownLatch(1);
        AtomicBoolean slow = new AtomicBoolean(true);
        storage.after((call, which) -> {
            if (call == Call.CLAIM && slow.getAndSet(false)) {
                awaitForEver(overtaken);
            }
        });
        Idempotence late = idempotence(SHORT_LEASE);
        IdempotentCall call = IdempotentCall.of(id);
        StorageKey requestKey = StorageKey.of("default", "", "", id);
        CompletableFuture<Decision> reply =
                CompletableFuture.supplyAsync(() -> late.engine().claim(call, SHORT_LEASE));
        await().until(() -> memory.find(requestKey)
                .filter(record -> record.state() == RecordState.ABANDONED)
                .isPresent());
        assertThat(over(memory, SHORT_LEASE).engine().claim(call, SHORT_LEASE)).isInstanceOf(Decision.Run.class);

        overtaken.countDown();

        assertThat(reply.orTimeout(20, TimeUnit.SECONDS).join())
                .isInstanceOfSatisfying(
                        Decision.Refuse.class,
                        refuse -> assertThat(refuse.refusal()).isEqualTo(Refusal.IN_PROGRESS));
        assertThat(events).containsExactly(IdempotenceEvent.TAKE_OVER, IdempotenceEvent.IN_PROGRESS);
    }

    @Test
    @DisplayName("T2: a claim whose reply comes after its lease runs under a new lease if it is its own still")
    void aClaimWhoseReplyIsTooLateRunsIfNobodyTookItOver() {
        AtomicBoolean slow = new AtomicBoolean(true);
        storage.after((call, which) -> {
            if (call == Call.CLAIM && slow.getAndSet(false)) {
                await().until(() -> isOver(which));
            }
        });
        Decision decision = idempotence(SHORT_LEASE).engine().claim(IdempotentCall.of(id), SHORT_LEASE);
        assertThat(decision)
                .isInstanceOfSatisfying(
                        Decision.Run.class,
                        run -> assertThat(run.execution().fence()).isEqualTo(1));
        assertThat(storage.count(Call.CLAIM)).isEqualTo(2);
        assertThat(events).containsExactly(IdempotenceEvent.CLAIMED);
    }

    @Test
    @DisplayName("T7: a recovered execution is marked as such, also if the reply to its claim was too late")
    void aRecoveredExecutionWhoseReplyIsTooLateIsATakeOver() {
        IdempotencePolicy recovers = IdempotencePolicy.builder()
                .lease(SHORT_LEASE.lease())
                .recover((which, fence) -> IdempotencePolicy.Applied.NO)
                .build();
        IdempotentCall call = IdempotentCall.of(id);
        storage.withoutRenewals();
        Idempotence idempotence = idempotence(recovers);
        StorageKey requestKey = ((Decision.Run) idempotence.engine().claim(call, recovers))
                .execution()
                .key();
        await().until(() -> memory.find(requestKey).orElseThrow().state() == RecordState.ABANDONED);
        AtomicBoolean slow = new AtomicBoolean(true);
        storage.after((what, which) -> {
            IdempotenceRecord record = memory.find(which).orElseThrow();
            if (what == Call.CLAIM && record.fence() == 2 && slow.getAndSet(false)) {
                await().until(() -> isOver(which));
            }
        });
        assertThat(idempotence.engine().claim(call, recovers))
                .isInstanceOfSatisfying(
                        Decision.Run.class,
                        run -> assertThat(run.execution().takenOver()).isTrue());
        assertThat(slow).isFalse();
    }

    @Test
    @DisplayName(
            "P6: a storage that replies to every claim later than the lease lasts lets nothing run, and keeps nothing claimed")
    void claimsWhoseRepliesAreAlwaysTooLateRunNothing() {
        AtomicInteger slow = new AtomicInteger(2);
        storage.after((call, which) -> {
            if (call == Call.CLAIM && slow.getAndDecrement() > 0) {
                await().until(() -> isOver(which));
            }
        });
        Idempotence idempotence = idempotence(SHORT_LEASE);
        Decision decision = idempotence.engine().claim(IdempotentCall.of(id), SHORT_LEASE);

        assertThat(decision)
                .isInstanceOfSatisfying(
                        Decision.Refuse.class,
                        refuse -> assertThat(refuse.refusal()).isEqualTo(Refusal.STORAGE_UNAVAILABLE));
        StorageKey requestKey = StorageKey.of("default", "", "", id);
        await().until(() -> memory.find(requestKey).orElseThrow().state() == RecordState.RELEASED);
        assertThat(events).containsExactly(IdempotenceEvent.STORAGE_ERROR);
    }

    @Test
    @DisplayName("T9: an owner counts its lease from before its claim left, not from when the reply came")
    void theLeaseCountsFromBeforeTheClaim() {
        AtomicLong left = new AtomicLong();
        storage.before((call, which) -> left.set(System.nanoTime()));
        Decision.Run run =
                (Decision.Run) idempotence().engine().claim(IdempotentCall.of(id), IdempotencePolicy.defaults());
        assertThat(run.execution().lease().renewedAt() - left.get()).isNotPositive();
        assertThat(run.execution().lease().mayBeOver()).isFalse();
    }

    @Test
    @DisplayName("P6: whatever a storage throws, nothing runs")
    void anUnexpectedFailureOfTheStorageRunsNothing() {
        storage.before((call, which) -> {
            throw new UnsupportedOperationException("a driver's bug");
        });
        Idempotence idempotence = idempotence();
        assertThat(refusal(idempotence)).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        assertThatThrownBy(() -> idempotence.saveIfAbsent(id)).isInstanceOf(UnsupportedOperationException.class);
        assertThat(runs).hasValue(0);
        assertThat(events).contains(IdempotenceEvent.STORAGE_ERROR);
    }

    @Test
    @DisplayName("T22: whatever a storage throws, the real result goes to the caller and is recorded later")
    void anUnexpectedFailureAtCompletionIsRetried() throws Exception {
        Queue<Throwable> failures = new ConcurrentLinkedQueue<>(List.of(
                new StackOverflowError(),
                new UnsupportedOperationException("a driver's bug"),
                unavailable(),
                new NoClassDefFoundError("a driver's class")));
        storage.before((call, which) -> {
            Throwable failure = call == Call.COMPLETE ? failures.poll() : null;
            if (failure instanceof Error error) {
                throw error;
            } else if (failure != null) {
                throw (RuntimeException) failure;
            }
        });
        Idempotence idempotence = idempotence();
        assertThat(idempotence.execute(id, this::work)).isEqualTo("run 1");
        await().until(() -> memory.find(key).orElseThrow().state() == RecordState.COMPLETED);
        assertThat(idempotence.execute(id, this::work)).isEqualTo("run 1");
    }

    @Test
    @DisplayName("T20: a record that was damaged while its handler ran is not written again and again")
    void aDamagedRecordIsGivenUp() throws Exception {
        storage.before((call, which) -> {
            if (call == Call.COMPLETE) {
                throw storage.count(Call.COMPLETE) == 1
                        ? unavailable()
                        : new CorruptRecordException("somebody wrote over it");
            }
        });
        Idempotence idempotence = idempotence();
        assertThat(idempotence.execute(id, this::work)).isEqualTo("run 1");
        await().until(() -> events.stream()
                        .filter(event -> event == IdempotenceEvent.STORAGE_ERROR)
                        .count()
                == 2);
        idempotence.close();
        assertThat(storage.count(Call.COMPLETE)).isEqualTo(2);
    }

    @Test
    @DisplayName("T21: a claim that never arrived is not made in the background: it would look like a first attempt")
    void aClaimThatNeverArrivedIsNotMadeLater() throws Exception {
        storage.before((call, which) -> {
            if (call == Call.CLAIM) {
                throw unavailable();
            }
        });
        Idempotence idempotence = idempotence();
        assertThatThrownBy(() -> idempotence.saveIfAbsent(id)).isInstanceOf(StorageUnavailableException.class);
        storage.before((call, which) -> {});
        List<Call> claimedOrLookedAt = List.of(Call.CLAIM, Call.FIND);
        await().until(() -> claimedOrLookedAt.stream().mapToLong(storage::count).sum() >= 3);
        idempotence.close();
        assertThat(memory.list("default")).isEmpty();
    }

    @Test
    @DisplayName("T21: nothing abandoned is taken over by a claim under which nothing will run")
    void givingBackTakesNothingOver() throws Exception {
        IdempotenceStorage other = IdempotenceStorage.inMemory();
        other.claim(new ClaimRequest(
                key, Fingerprint.NONE, new Owner(1, 2), Duration.ofMillis(1), Duration.ofHours(1), false));
        await().until(() -> other.find(key).orElseThrow().state() == RecordState.ABANDONED);
        FaultyStorage faulty = new FaultyStorage(other).before((call, which) -> {
            if (call == Call.CLAIM) {
                throw unavailable();
            }
        });
        Idempotence idempotence = over(faulty, SHORT_LEASE);
        assertThat(refusal(idempotence)).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        faulty.before((call, which) -> {});
        await().until(() -> faulty.count(Call.CLAIM) + faulty.count(Call.FIND) >= 3);
        idempotence.close();
        assertThat(other.find(key).orElseThrow().state()).isEqualTo(RecordState.ABANDONED);
        // A take-over that was taken back would be abandoned, too.
        assertThat(other.find(key).orElseThrow().fence()).isEqualTo(1);
    }

    @Test
    @DisplayName("T21: a claim whose replies are lost is given back, also while large completions wait")
    void aLostClaimIsGivenBackWhileLargeCompletionsWait() throws Exception {
        Idempotence idempotence = idempotence();
        storage.before((call, which) -> {
            if (call == Call.COMPLETE) {
                throw unavailable();
            }
        });
        String large = "x".repeat(17 << 20);
        idempotence.execute(IdempotenceId.of("large"), () -> large);
        storage.after((call, which) -> {
            if (call == Call.CLAIM) {
                throw unavailable();
            }
        });
        assertThat(refusal(idempotence)).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        storage.after((call, which) -> {});
        await().until(() -> memory.find(key).orElseThrow().state() == RecordState.RELEASED);
        assertThat(memory.find(key("large")).orElseThrow().state()).isEqualTo(RecordState.IN_PROGRESS);
    }

    @Test
    @DisplayName("T21: a claim under which nothing ran is given back however long the outage outlasts its lease")
    void aClaimIsGivenBackHoweverLongTheOutageOutlastsItsLease() {
        storage.after((call, which) -> {
            throw unavailable();
        });
        assertThat(refusal(idempotence(SHORT_LEASE))).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        storage.before((call, which) -> {
            throw unavailable();
        });
        await().until(() -> memory.find(key).orElseThrow().state() == RecordState.ABANDONED);
        long claims = storage.count(Call.CLAIM);
        await().until(() -> storage.count(Call.CLAIM) > claims + 1);
        storage.before((call, which) -> {}).after((call, which) -> {});

        await().until(() -> memory.find(key).orElseThrow().state() == RecordState.RELEASED);
        assertThat(events).doesNotContain(IdempotenceEvent.UNKNOWN).containsOnlyOnce(IdempotenceEvent.STORAGE_ERROR);
    }

    @Test
    @DisplayName("T22: ends are recorded while claims are given back to a storage that hangs, as on a dead shard")
    void giveBacksThatHangHoldUpNoCompletion() throws Exception {
        CountDownLatch hangs = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        AtomicBoolean down = new AtomicBoolean(true);
        storage.before((call, which) -> {
            if (call == Call.CLAIM && !which.equals(key)) {
                if (Thread.currentThread().getName().startsWith("idempotence-")) {
                    hangs.countDown();
                    awaitForEver(goOn);
                }
                throw unavailable();
            }
            if (call == Call.COMPLETE && down.get()) {
                throw unavailable();
            }
        });
        Idempotence idempotence = idempotence();
        try {
            // So few that the circuit breaker stays closed.
            for (int i = 0; i < 3; i++) {
                IdempotenceId lost = IdempotenceId.of("on-a-dead-shard-" + i);
                assertThat(refusalOf(() -> idempotence.execute(lost, this::work)))
                        .isEqualTo(Refusal.STORAGE_UNAVAILABLE);
            }
            hangs.await();
            idempotence.execute(id, this::work);
            down.set(false);
            await().until(() -> memory.find(key).orElseThrow().state() == RecordState.COMPLETED);
        } finally {
            goOn.countDown();
        }
    }

    @Test
    @DisplayName("T21: a claim is given back whatever the storage throws after it has stored it")
    void aStoredClaimIsGivenBackWhateverTheStorageThrows() throws Exception {
        List<Throwable> failures = List.of(
                new IllegalStateException("a driver's bug"),
                new NumberFormatException("a reply that the driver cannot read"),
                new OutOfMemoryError("unable to create native thread"));
        Idempotence idempotence = idempotence(SHORT_LEASE);
        for (Throwable failure : failures) {
            loseReplies(failure);
            assertThat(refusal(idempotence)).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
            storage.after((call, which) -> {});
            await(failure.toString()).until(() -> memory.find(key).orElseThrow().state() == RecordState.RELEASED);
        }
        assertThat(runs).hasValue(0);
        assertThat(idempotence.execute(id, this::work)).isEqualTo("run 1");
    }

    @Test
    @DisplayName("T21: an ID that was saved before the storage threw is released, and nobody takes it for saved")
    void aSavedIdIsReleasedWhateverTheStorageThrows() {
        Idempotence idempotence = idempotence();
        loseReplies(new IllegalStateException("a driver's bug"));
        assertThatThrownBy(() -> idempotence.saveIfAbsent(id)).isInstanceOf(IllegalStateException.class);
        storage.after((call, which) -> {});
        await().until(() -> {
            try {
                return idempotence.saveIfAbsent(id);
            } catch (StorageUnavailableException e) {
                return false;
            }
        });
    }

    @Test
    @DisplayName("T21: a claim whose reply was lost is given back whatever its second try throws")
    void aClaimIsGivenBackWhateverItsSecondTryThrows() {
        AtomicInteger claims = new AtomicInteger();
        storage.after((call, which) -> {
            if (call == Call.CLAIM && claims.getAndIncrement() == 0) {
                throw unavailable();
            } else if (call == Call.CLAIM && claims.get() == 2) {
                throw new IllegalStateException("a driver's bug");
            }
        });
        assertThat(refusal(idempotence())).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        await().until(() -> memory.find(key).orElseThrow().state() == RecordState.RELEASED);
        assertThat(runs).hasValue(0);
    }

    @Test
    @DisplayName("T9: a claim that cannot even be logged is given back, and nothing renews it")
    void aClaimThatCannotBeLoggedIsGivenBack() {
        Thread caller = Thread.currentThread();
        TurboFilter brokenLog = new TurboFilter() {
            @Override
            public FilterReply decide(
                    Marker marker, Logger logger, Level level, String format, Object[] params, Throwable thrown) {
                if (logger.getName().equals(Idempotence.class.getName()) && Thread.currentThread() == caller) {
                    throw new IllegalStateException("the log is broken");
                }
                return FilterReply.NEUTRAL;
            }
        };
        Idempotence idempotence = idempotence(SHORT_LEASE);
        LoggerContext logs = (LoggerContext) LoggerFactory.getILoggerFactory();
        logs.addTurboFilter(brokenLog);
        try {
            assertThatThrownBy(() -> idempotence.execute(id, this::work)).hasMessage("the log is broken");
        } finally {
            logs.getTurboFilterList().remove(brokenLog);
        }
        assertThat(runs).hasValue(0);
        assertThat(memory.find(key).orElseThrow().state()).isEqualTo(RecordState.RELEASED);
    }

    private void loseReplies(Throwable failure) {
        storage.after((call, which) -> {
            if (call == Call.CLAIM && failure instanceof Error error) {
                throw error;
            } else if (call == Call.CLAIM) {
                throw (RuntimeException) failure;
            }
        });
    }

    // ---- claims that were not written

    @Test
    @DisplayName("T21: a claim that certainly wrote nothing is not sent again, and nothing is given back")
    void aClaimThatWasNeverWrittenIsNeitherSentAgainNorGivenBack() throws Exception {
        for (StorageUnavailableException certain : List.of(
                StorageUnavailableException.notSent("no free connection", null),
                StorageUnavailableException.refused("out of memory", null))) {
            long before = storage.count(Call.CLAIM);
            storage.before((call, which) -> {
                throw certain;
            });
            Idempotence idempotence = idempotence();
            assertThat(refusal(idempotence)).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
            storage.before((call, which) -> {});
            idempotence.close();

            assertThat(storage.count(Call.CLAIM) - before).isEqualTo(1);
            assertThat(memory.find(key)).isEmpty();
        }
        assertThat(idempotence().execute(id, this::work)).isEqualTo("run 1");
    }

    @Test
    @DisplayName("T21: a claim whose reply was lost is given back although its second try was never sent")
    void aClaimWhoseSecondTryWasNeverSentIsGivenBack() {
        AtomicInteger claims = new AtomicInteger();
        storage.before((call, which) -> {
                    if (call == Call.CLAIM && claims.get() == 1) {
                        claims.incrementAndGet();
                        throw StorageUnavailableException.notSent("no free connection", null);
                    }
                })
                .after((call, which) -> {
                    if (call == Call.CLAIM && claims.getAndIncrement() == 0) {
                        throw unavailable();
                    }
                });
        assertThat(refusal(idempotence())).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        await().until(() -> memory.find(key).orElseThrow().state() == RecordState.RELEASED);
        assertThat(runs).hasValue(0);
    }

    // ---- results

    @Test
    @DisplayName("T14: an overtaken execution's own result is discarded")
    void anOvertakenWorkThatEndsWellIsRefusedAsInProgress() {
        assertThatThrownBy(() -> idempotence().execute(id, ResultCodec.text(), (Idempotence.Work<String>) execution -> {
                    execution.overtaken();
                    return work();
                }))
                .isInstanceOfSatisfying(ExecutionRefusedException.class, e -> {
                    assertThat(e.refusal()).isEqualTo(Refusal.IN_PROGRESS);
                    assertThat(e.id()).isEqualTo(id);
                    assertThat(e.retryAfter()).isPositive();
                });
        assertThat(memory.find(key).orElseThrow().state()).isEqualTo(RecordState.RELEASED);
    }

    @Test
    void aCodecThatBreaksDownNeverLetsTheWorkRunAgain() {
        Idempotence idempotence = idempotence();
        ResultCodec<String> broken = ResultCodec.of(
                text -> {
                    throw new StackOverflowError();
                },
                bytes -> "never");
        assertThatThrownBy(() -> idempotence.execute(id, broken, this::work)).isInstanceOf(StackOverflowError.class);
        assertThatThrownBy(() -> idempotence.execute(id, broken, this::work))
                .isInstanceOfSatisfying(
                        ExecutionRefusedException.class,
                        e -> assertThat(e.refusal()).isEqualTo(Refusal.RESULT_UNAVAILABLE));
        assertThat(runs).hasValue(1);
    }

    @Test
    void aResultOfNullIsGivenAgain() throws Exception {
        Idempotence idempotence = idempotence();
        for (int i = 0; i < 2; i++) {
            String result = idempotence.execute(id, () -> {
                runs.incrementAndGet();
                return null;
            });
            assertThat(result).isNull();
        }
        assertThat(runs).hasValue(1);
    }

    @Test
    void aListenerThatBreaksDownChangesNothing() throws Exception {
        Idempotence idempotence = Idempotence.builder(memory)
                .listener((event, which) -> {
                    throw new AssertionError("a listener's bug");
                })
                .build();
        open.add(idempotence);
        assertThat(idempotence.execute(id, this::work)).isEqualTo("run 1");
        assertThat(idempotence.execute(id, this::work)).isEqualTo("run 1");
    }

    // ---- the end

    @Test
    void closingTriesEveryWaitingWriteOnceMoreAndInterruptsNone() throws Exception {
        AtomicBoolean interrupted = new AtomicBoolean();
        AtomicBoolean closing = new AtomicBoolean();
        CountDownLatch underWay = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        storage.before((call, which) -> {
            boolean background = Thread.currentThread().getName().equals("idempotence-writes");
            if (call != Call.COMPLETE) {
                return;
            }
            if (background && which.equals(key("first")) && underWay.getCount() > 0) {
                underWay.countDown();
                try {
                    goOn.await();
                } catch (InterruptedException e) {
                    interrupted.set(true);
                }
            } else if (!closing.get() || which.equals(key("broken"))) {
                throw unavailable();
            }
        });
        Idempotence idempotence = idempotence();
        List<String> ids = List.of("first", "a", "broken", "b", "c");
        for (String each : ids) {
            idempotence.execute(IdempotenceId.of(each), this::work);
        }
        underWay.await();
        closing.set(true);
        Thread closer = new Thread(idempotence::close);
        closer.start();
        await().until(() -> closer.getState() == Thread.State.TIMED_WAITING);
        goOn.countDown();
        closer.join();

        assertThat(interrupted).isFalse();
        assertThat(events.stream().filter(event -> event == IdempotenceEvent.UNKNOWN))
                .hasSize(1);
        assertThat(ids.stream()
                        .filter(each -> memory.find(key(each)).orElseThrow().state() != RecordState.COMPLETED))
                .containsExactly("broken");
    }

    @Test
    void aTextGoesThroughTheStorageAsItIs() throws Exception {
        String text = "äöü €";
        Idempotence idempotence = idempotence();
        idempotence.execute(id, () -> text);
        assertThat(idempotence.execute(id, this::work)).isEqualTo(text);
        assertThat(text.getBytes(StandardCharsets.UTF_8)).hasSizeGreaterThan(text.length());
    }
}
