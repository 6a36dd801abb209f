package io.idempotence.server;

import static io.idempotence.server.FaultyProvider.ID;
import static io.idempotence.server.FaultyProvider.KEY;
import static io.idempotence.server.FaultyProvider.SHORT_LEASE;
import static io.idempotence.server.FaultyProvider.unavailable;
import static io.idempotence.server.storage.FaultyStorage.hang;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.OnAbandoned;
import io.idempotence.http.Refusal;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.FaultyStorage.Call;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** Executions whose renewals fail or hang, or whose claims take longer than their lease. */
class LeaseTroubleTest {
    /** Long enough that a pause of the machine does not end it while it must last. */
    private static final IdempotencePolicy LONGER_LEASE = IdempotencePolicy.builder()
            .lease(Duration.ofSeconds(2))
            .onAbandoned(OnAbandoned.RE_EXECUTE)
            .build();

    @RegisterExtension
    private final FaultyProvider provider = new FaultyProvider();

    private final IdempotenceStorage memory = provider.memory;
    private final FaultyStorage storage = provider.storage;

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName("T9: a record that cannot be renewed costs the others nothing")
    void oneFailingRecordDoesNotStopTheRenewalOfOthers() {
        assertOthersAreRenewed(20, () -> {
            throw new IllegalStateException("this record is broken");
        });
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName("T9: records whose renewal hangs, as on a dead shard, cost the others nothing")
    void renewalsThatHangDoNotStopTheRenewalOfOthers() {
        CountDownLatch over = new CountDownLatch(1);
        try {
            assertOthersAreRenewed(24, () -> hang(over));
        } finally {
            over.countDown();
        }
    }

    /**
     * Every second record meets the trouble when it is renewed. In whatever order they are looked at, some good ones come after a
     * bad one.
     */
    private void assertOthersAreRenewed(int records, Runnable trouble) {
        Idempotence idempotence = provider.idempotence(SHORT_LEASE);
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

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName("T9: an outage that is shorter than the lease costs no execution its lease, however many there are")
    void allLeasesAreRenewedAfterAnOutage() {
        IdempotencePolicy policy =
                IdempotencePolicy.builder().lease(Duration.ofSeconds(6)).build();
        Idempotence idempotence = provider.idempotence(policy);
        Set<StorageKey> failed = ConcurrentHashMap.newKeySet();
        Set<StorageKey> renewed = ConcurrentHashMap.newKeySet();
        AtomicBoolean down = new AtomicBoolean(true);
        storage.before((call, which) -> {
            if (call == Call.RENEW && down.get()) {
                failed.add(which);
                throw unavailable();
            } else if (call == Call.RENEW) {
                // As over a network.
                LockSupport.parkNanos(1_000_000);
                renewed.add(which);
            }
        });
        for (int i = 0; i < 1_000; i++) {
            idempotence.engine().claim(IdempotentCall.of(IdempotenceId.of("each-" + i)), policy);
        }
        await().until(() -> failed.size() == 1_000);

        down.set(false);

        await().until(() -> renewed.size() == 1_000);
        assertThat(failed).allMatch(key -> memory.find(key).orElseThrow().state() == State.IN_PROGRESS);
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName("T14, P4: waiting duplicates get the result of the execution that overtook a late owner")
    void theResultOfAFencedOwnerIsNobodysResponse() {
        storage.withoutRenewals();
        Idempotence late = provider.idempotence(SHORT_LEASE);
        Idempotence other = provider.over(
                memory,
                IdempotencePolicy.builder().onAbandoned(OnAbandoned.RE_EXECUTE).build());
        IdempotentCall call = IdempotentCall.of(ID);
        ClaimedExecution overtaken = (ClaimedExecution) late.engine().claim(call, SHORT_LEASE);
        AtomicReference<ClaimedExecution> successor = new AtomicReference<>();
        await().until(() -> {
            if (other.engine().claim(call, other.policy()) instanceof ClaimedExecution execution) {
                successor.set(execution);
            }
            return successor.get() != null;
        });
        CompletableFuture<Decision> waiter = Duplicates.claim(late, call, SHORT_LEASE, Duration.ofMinutes(5));
        assertThat(waiter).isNotDone();

        assertThat(overtaken.finish(Verdict.KEEP, StoredResult.value(new byte[] {1})))
                .isEmpty();

        successor.get().finish(Verdict.KEEP, StoredResult.value(new byte[] {2}));
        assertThat(waiter.orTimeout(1, TimeUnit.MINUTES).join())
                .isInstanceOfSatisfying(
                        Decision.Replay.class,
                        replay -> assertThat(replay.result()).isEqualTo(StoredResult.value(new byte[] {2})));
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName("T22: a completion that waits for the storage keeps its claim until it is written")
    void aPendingCompletionKeepsItsLease() throws Exception {
        AtomicBoolean down = new AtomicBoolean(true);
        storage.before((call, which) -> {
            if (call == Call.COMPLETE && down.get()) {
                throw unavailable();
            }
        });
        // Renewed soon enough although the machine pauses for some seconds.
        IdempotencePolicy policy =
                LONGER_LEASE.toBuilder().lease(Duration.ofSeconds(6)).build();
        assertThat(provider.idempotence(policy).execute(ID, provider::work)).isEqualTo("run 1");

        long renewals = storage.count(Call.RENEW);
        Idempotence other = provider.over(memory, policy);
        await().until(() -> {
            assertThat(provider.refusal(other)).isEqualTo(Refusal.IN_PROGRESS);
            return storage.count(Call.RENEW) >= renewals + 3;
        });
        down.set(false);
        await().until(() -> memory.find(KEY).orElseThrow().state() == State.COMPLETED);

        assertThat(other.execute(ID, provider::work)).isEqualTo("run 1");
        assertThat(provider.runs).hasValue(1);
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName("T14: a late owner whose overtaker's result was not kept gives its own")
    void aLateOwnerIsNotGivenAResultThatWasNotKept() throws Exception {
        storage.withoutRenewals();
        Idempotence other = provider.over(memory, SHORT_LEASE);
        ResultCodec<String> failing = ResultCodec.of(
                text -> {
                    throw new IllegalStateException("cannot be encoded");
                },
                bytes -> "never");

        String late = provider.idempotence(SHORT_LEASE).execute(ID, () -> {
            String own = provider.work();
            await().until(() -> memory.find(KEY).orElseThrow().state() == State.ABANDONED);
            assertThatThrownBy(() -> other.execute(ID, failing, provider::work)).hasMessage("cannot be encoded");
            return own;
        });

        assertThat(late).isEqualTo("run 1");
        assertThat(provider.events).contains(IdempotenceEvent.FENCED);
    }

    /** Whether a lease is over by its owner's clock, too: the storage's counts whole milliseconds. */
    private boolean isOver(StorageKey key) {
        return memory.find(key).orElseThrow().leaseLeft().toMillis() < 0;
    }

    /** The replies to the first claims come after the lease. */
    private void delayTheRepliesToTheFirstClaims(int number) {
        storage.after((call, which) -> {
            if (call == Call.CLAIM && storage.count(Call.CLAIM) <= number) {
                await().until(() -> isOver(which));
            }
        });
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName("P2: a claim whose reply comes after its lease runs nothing if another one has taken over")
    void aClaimWhoseReplyIsTooLateIsAskedAgain() {
        CountDownLatch overtaken = new CountDownLatch(1);
        AtomicBoolean slow = new AtomicBoolean(true);
        storage.after((call, which) -> {
            if (call == Call.CLAIM && slow.getAndSet(false)) {
                hang(overtaken);
            }
        });
        Idempotence late = provider.idempotence(SHORT_LEASE);
        IdempotentCall call = IdempotentCall.of(ID);
        StorageKey requestKey = StorageKey.of("default", "", "", ID);
        CompletableFuture<Decision> reply =
                CompletableFuture.supplyAsync(() -> late.engine().claim(call, SHORT_LEASE));
        await().until(() -> memory.find(requestKey)
                .filter(record -> record.state() == State.ABANDONED)
                .isPresent());
        assertThat(provider.over(memory, LONGER_LEASE).engine().claim(call, LONGER_LEASE))
                .isInstanceOf(ClaimedExecution.class);

        overtaken.countDown();

        assertThat(reply.orTimeout(1, TimeUnit.MINUTES).join())
                .isInstanceOfSatisfying(
                        Decision.Refuse.class,
                        refuse -> assertThat(refuse.refusal()).isEqualTo(Refusal.IN_PROGRESS));
        assertThat(provider.events).containsExactly(IdempotenceEvent.TAKE_OVER, IdempotenceEvent.IN_PROGRESS);
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName("T2: a claim whose reply comes after its lease runs under a new lease if it is its own still")
    void aClaimWhoseReplyIsTooLateRunsIfNobodyTookItOver() {
        delayTheRepliesToTheFirstClaims(1);
        Decision decision = provider.idempotence(LONGER_LEASE).engine().claim(IdempotentCall.of(ID), LONGER_LEASE);
        assertThat(decision)
                .isInstanceOfSatisfying(
                        ClaimedExecution.class, run -> assertThat(run.fence()).isEqualTo(1));
        assertThat(storage.count(Call.CLAIM)).isEqualTo(2);
        assertThat(provider.events).containsExactly(IdempotenceEvent.CLAIMED);
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName("T7: a recovered execution is marked as such, even if the reply to its claim was too late")
    void aRecoveredExecutionWhoseReplyIsTooLateIsATakeOver() {
        IdempotencePolicy recovers = IdempotencePolicy.builder()
                .lease(LONGER_LEASE.lease())
                .recover((which, fence) -> IdempotencePolicy.Applied.NO)
                .build();
        IdempotentCall call = IdempotentCall.of(ID);
        storage.withoutRenewals();
        Idempotence idempotence = provider.idempotence(recovers);
        StorageKey requestKey = ((ClaimedExecution) idempotence.engine().claim(call, recovers)).key();
        await().until(() -> memory.find(requestKey).orElseThrow().state() == State.ABANDONED);
        AtomicBoolean slow = new AtomicBoolean(true);
        storage.after((what, which) -> {
            IdempotenceRecord record = memory.find(which).orElseThrow();
            if (what == Call.CLAIM && record.fence() == 2 && slow.getAndSet(false)) {
                await().until(() -> isOver(which));
            }
        });
        assertThat(idempotence.engine().claim(call, recovers))
                .isInstanceOfSatisfying(
                        ClaimedExecution.class,
                        run -> assertThat(run.takenOver()).isTrue());
        assertThat(slow).isFalse();
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName(
            "P6: a storage that replies to every claim later than the lease lasts lets nothing run, and keeps nothing claimed")
    void claimsWhoseRepliesAreAlwaysTooLateRunNothing() {
        delayTheRepliesToTheFirstClaims(2);
        Idempotence idempotence = provider.idempotence(SHORT_LEASE);
        Decision decision = idempotence.engine().claim(IdempotentCall.of(ID), SHORT_LEASE);

        assertThat(decision)
                .isInstanceOfSatisfying(
                        Decision.Refuse.class,
                        refuse -> assertThat(refuse.refusal()).isEqualTo(Refusal.STORAGE_UNAVAILABLE));
        StorageKey requestKey = StorageKey.of("default", "", "", ID);
        await().until(() -> memory.find(requestKey).orElseThrow().state() == State.RELEASED);
        assertThat(provider.events).containsExactly(IdempotenceEvent.STORAGE_ERROR);
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName("T21: a claim that came too late is given back although its repetition was never sent")
    void aLateClaimWhoseRepetitionWasNeverSentIsGivenBack() {
        assertGivenBackOnce(notSent());
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName("T21: a claim that came too late is given back once, although both of its repetitions failed")
    void aLateClaimWhoseRepetitionsFailIsGivenBackOnce() {
        assertGivenBackOnce(unavailable(), notSent());
    }

    private static StorageUnavailableException notSent() {
        return StorageUnavailableException.notSent("no free connection", null);
    }

    /** The reply to a claim comes too late, and its repetitions fail. To give it back takes another claim and a release. */
    private void assertGivenBackOnce(StorageUnavailableException... repetitions) {
        delayTheRepliesToTheFirstClaims(1);
        storage.before((call, which) -> {
            int repetition = (int) storage.count(Call.CLAIM) - 1;
            if (call == Call.CLAIM && repetition >= 1 && repetition <= repetitions.length) {
                throw repetitions[repetition - 1];
            }
        });
        Idempotence idempotence = provider.idempotence(
                IdempotencePolicy.builder().lease(SHORT_LEASE.lease()).build());
        assertThat(provider.refusal(idempotence)).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        await().until(() -> memory.find(KEY).orElseThrow().state() == State.RELEASED);
        // What is still to be given back is given back now.
        idempotence.close();
        assertThat(storage.count(Call.CLAIM)).isEqualTo(1 + repetitions.length + 1);
        assertThat(storage.count(Call.RELEASE)).isEqualTo(1);
        assertThat(provider.runs).hasValue(0);
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName("T9: an owner counts its lease from before its claim left, not from when the reply came")
    void theLeaseCountsFromBeforeTheClaim() {
        AtomicLong left = new AtomicLong();
        storage.before((call, which) -> left.set(System.nanoTime()));
        ClaimedExecution execution = (ClaimedExecution)
                provider.idempotence().engine().claim(IdempotentCall.of(ID), IdempotencePolicy.defaults());
        assertThat(execution.lease().renewedAt() - left.get()).isNotPositive();
        assertThat(execution.lease().mayBeOver()).isFalse();
    }

    /** The operation ran, nobody renewed its lease, and another process took it for abandoned. */
    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName("T9: nothing runs after close(), because nobody would renew its lease")
    void nothingRunsAfterClose() {
        Idempotence idempotence = provider.idempotence();
        idempotence.close();
        assertThat(provider.refusal(idempotence)).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        assertThat(provider.runs).hasValue(0);
        assertThat(memory.list("default"))
                .singleElement()
                .satisfies(record -> assertThat(record.state()).isEqualTo(State.RELEASED));
    }
}
