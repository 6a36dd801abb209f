package io.idempotence.server;

import static io.idempotence.server.Refusals.refusalOf;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.OnAbandoned;
import io.idempotence.http.Refusal;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.redis.EmbeddedRedis;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.WriteResult;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** Tests of how an operation's rules treat abandoned executions and exceptions. */
class RecoveryTest {
    private static final Duration LEASE = Duration.ofMillis(20);
    private static final SecureRandom RANDOM = new SecureRandom();
    private static final AtomicInteger IDS = new AtomicInteger();
    private static EmbeddedRedis redis;
    private static RedisIdempotenceStorage storage;

    private final List<IdempotenceEvent> events = new CopyOnWriteArrayList<>();
    private final AtomicInteger runs = new AtomicInteger();
    private final AtomicInteger questions = new AtomicInteger();
    private IdempotenceId id;

    @BeforeAll
    static void start() {
        redis = EmbeddedRedis.start();
        storage = redis.connect();
    }

    @AfterAll
    static void stop() {
        storage.close();
        redis.close();
    }

    @BeforeEach
    void newId() {
        id = IdempotenceId.of("order-" + IDS.incrementAndGet());
    }

    private StorageKey key() {
        return StorageKey.of("default", "", "execute", id);
    }

    /** A claim whose process died. */
    private Claim abandoned() {
        return abandoned(key(), Fingerprint.NONE);
    }

    private Claim abandoned(StorageKey key, Fingerprint fingerprint) {
        ClaimRequest request =
                new ClaimRequest(key, fingerprint, Owner.random(RANDOM), LEASE, Duration.ofHours(1), false);
        Claim claim = ((ClaimResult.Claimed) storage.claim(request)).claim();
        await().until(() -> storage.find(key).orElseThrow().state() == State.ABANDONED);
        return claim;
    }

    private Idempotence recovering(IdempotencePolicy.Recovery recovery) {
        return with(IdempotencePolicy.builder()
                .recover((which, fence) -> {
                    questions.incrementAndGet();
                    return recovery.wasApplied(which, fence);
                })
                .build());
    }

    private Idempotence with(IdempotencePolicy policy) {
        return Idempotence.builder(storage)
                .policy(policy)
                .listener((event, which) -> events.add(event))
                .build();
    }

    private String work() {
        return "run " + runs.incrementAndGet();
    }

    private void assertRefused(Idempotence idempotence, Refusal refusal) {
        assertThat(refusalOf(() -> idempotence.execute(id, this::work))).isEqualTo(refusal);
    }

    @Test
    @DisplayName("T7: not applied: the attempt runs with the next fence, and the late owner is fenced")
    void notAppliedRuns() throws Exception {
        Claim late = abandoned();
        List<Object> asked = new CopyOnWriteArrayList<>();

        String result = recovering((which, fence) -> {
                    asked.add(which);
                    asked.add(fence);
                    return IdempotencePolicy.Applied.NO;
                })
                .execute(id, ResultCodec.text(), (IdempotentWork<String>)
                        execution -> work() + " fence " + execution.fence() + " taken over " + execution.takenOver());

        assertThat(result).isEqualTo("run 1 fence 2 taken over true");
        assertThat(events).containsExactly(IdempotenceEvent.TAKE_OVER);
        assertThat(asked).containsExactly(IdempotentCall.of(id), 1L);
        assertThat(storage.complete(late, new byte[] {2, 1}, Duration.ofHours(1)))
                .isInstanceOf(WriteResult.Fenced.class);
    }

    @Test
    @DisplayName("T17: applied: nothing runs, and the rule is not called again")
    void appliedIsNeverRunAgain() {
        abandoned();
        Idempotence idempotence = recovering((which, fence) -> IdempotencePolicy.Applied.YES);

        assertRefused(idempotence, Refusal.RESULT_UNAVAILABLE);
        assertRefused(idempotence, Refusal.RESULT_UNAVAILABLE);

        assertThat(runs).hasValue(0);
        assertThat(questions).hasValue(1);
    }

    @Test
    @DisplayName("P5: recovery looks an ID up in its own tenant's books")
    void oneIdOfTwoTenantsIsDistinguished() throws Exception {
        IdempotentCall paid = IdempotentCall.of("charge", id)
                .withScope("tenant-a")
                .withFingerprint(Fingerprint.ofContent(new byte[] {1}));
        IdempotentCall unpaid = paid.withScope("tenant-b");
        Set<IdempotentCall> ledger = Set.of(paid);
        for (IdempotentCall each : List.of(paid, unpaid)) {
            abandoned(RecordKind.EXECUTE.key("default", each), each.fingerprint());
        }
        Idempotence idempotence = recovering((which, fence) ->
                ledger.contains(which) ? IdempotencePolicy.Applied.YES : IdempotencePolicy.Applied.NO);

        assertThat(refusalOf(() -> charge(idempotence, paid))).isEqualTo(Refusal.RESULT_UNAVAILABLE);
        assertThat(charge(idempotence, unpaid)).isEqualTo("run 1");
    }

    private String charge(Idempotence idempotence, IdempotentCall call) throws Exception {
        return idempotence.execute(call, idempotence.policy(), ResultCodec.text(), execution -> work());
    }

    @Test
    @DisplayName("T6: an undecided recovery refuses the attempt and is asked at the next one")
    void unknownIsRefused() {
        abandoned();
        Idempotence idempotence = recovering((which, fence) -> IdempotencePolicy.Applied.UNKNOWN);

        assertRefused(idempotence, Refusal.OUTCOME_UNKNOWN);
        assertRefused(idempotence, Refusal.OUTCOME_UNKNOWN);

        assertThat(runs).hasValue(0);
        assertThat(questions).hasValue(2);
    }

    @Test
    void recoveryRuleThatThrowsRefuses() {
        abandoned();
        assertRefused(
                recovering((which, fence) -> {
                    throw new IOException("the ledger is away");
                }),
                Refusal.OUTCOME_UNKNOWN);
        assertThat(Thread.currentThread().isInterrupted()).isFalse();
        // That the rule failed, and that an attempt was refused.
        assertThat(events).containsExactly(IdempotenceEvent.UNKNOWN, IdempotenceEvent.UNKNOWN);
        assertRefused(
                recovering((which, fence) -> {
                    throw new InterruptedException();
                }),
                Refusal.OUTCOME_UNKNOWN);
        assertThat(Thread.interrupted()).isTrue();
        assertThat(runs).hasValue(0);
        assertThat(events).contains(IdempotenceEvent.UNKNOWN);
    }

    @Test
    @DisplayName("P6: a rule that returns null lets nothing run")
    void recoveryRuleThatReturnsNullRefuses() {
        abandoned();
        assertRefused(recovering((which, fence) -> null), Refusal.OUTCOME_UNKNOWN);
        assertThat(runs).hasValue(0);
    }

    @Test
    void aLiveClaimIsNobodysToRecover() {
        storage.claim(new ClaimRequest(
                key(), Fingerprint.NONE, Owner.random(RANDOM), Duration.ofMinutes(5), Duration.ofHours(1), false));

        assertRefused(recovering((which, fence) -> IdempotencePolicy.Applied.NO), Refusal.IN_PROGRESS);

        assertThat(questions).hasValue(0);
    }

    @Test
    void ofAllWhoRecoverAtOnceOneRuns() throws Exception {
        for (int round = 0; round < 20; round++) {
            newId();
            runs.set(0);
            abandoned();
            Idempotence idempotence = recovering((which, fence) -> IdempotencePolicy.Applied.NO);
            Set<String> results = ConcurrentHashMap.newKeySet();
            ExecutorService pool = Executors.newFixedThreadPool(8);
            List<Future<?>> attempts = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                attempts.add(pool.submit((Callable<Void>) () -> {
                    try {
                        results.add(idempotence.execute(id, this::work));
                    } catch (ExecutionRefusedException e) {
                        assertThat(e.refusal()).isEqualTo(Refusal.IN_PROGRESS);
                    }
                    return null;
                }));
            }
            for (Future<?> attempt : attempts) {
                attempt.get();
            }
            pool.shutdown();
            assertThat(runs).hasValue(1);
            assertThat(results).containsExactly("run 1");
        }
    }

    @Test
    void recoveryNeedsARule() {
        assertThatThrownBy(() -> IdempotencePolicy.builder().onAbandoned(OnAbandoned.RECOVER))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("call recover(...) instead");
    }

    // ---- rules for exceptions

    private static IdempotencePolicy keepingIo() {
        return IdempotencePolicy.builder()
                .exception(IOException.class, Verdict.UNKNOWN)
                .exception(FileNotFoundException.class, Verdict.KEEP)
                .build();
    }

    @Test
    void theNearestClassOfAnExceptionCounts() {
        IdempotencePolicy policy = keepingIo();
        assertThat(policy.ofException(new FileNotFoundException())).isEqualTo(Verdict.KEEP);
        assertThat(policy.ofException(new IOException())).isEqualTo(Verdict.UNKNOWN);
        assertThat(policy.ofException(new IllegalStateException())).isEqualTo(Verdict.RELEASE);
    }

    @Test
    void aCauseCountsWhereTheExceptionItselfHasNoRule() {
        IdempotencePolicy policy = keepingIo();
        assertThat(policy.ofException(new UncheckedIOException(new FileNotFoundException())))
                .isEqualTo(Verdict.KEEP);
        Exception loop = new Exception();
        loop.initCause(new Exception(loop));
        assertThat(policy.ofException(loop)).isEqualTo(Verdict.RELEASE);
    }

    @Test
    void aRuleForAnExceptionDecidesOverTheId() {
        Idempotence idempotence = with(keepingIo());
        assertThatThrownBy(() -> idempotence.execute(id, () -> {
                    runs.incrementAndGet();
                    throw new IOException("no response from the bank");
                }))
                .isInstanceOf(IOException.class);

        assertRefused(idempotence, Refusal.OUTCOME_UNKNOWN);
        assertThat(runs).hasValue(1);
    }
}
