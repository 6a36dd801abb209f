package io.idempotence.server;

import static io.idempotence.server.Refusals.refusalOf;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.FailureRule;
import io.idempotence.IdempotenceId;
import io.idempotence.OnAbandoned;
import io.idempotence.http.Refusal;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.redis.EmbeddedRedis;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.Jedis;

/** Tests of what business code without HTTP sees, on a real Redis that can be killed. */
class IdempotenceTest {
    private final IdempotenceId id = IdempotenceId.of("order-4711");
    private final AtomicInteger runs = new AtomicInteger();
    private final List<IdempotenceEvent> events = new CopyOnWriteArrayList<>();
    private final List<Idempotence> open = new ArrayList<>();
    private EmbeddedRedis redis;

    @BeforeEach
    void start() {
        redis = EmbeddedRedis.startPersistent();
    }

    @AfterEach
    void stop() {
        open.forEach(Idempotence::close);
        redis.close();
    }

    private Idempotence idempotence(IdempotencePolicy policy) {
        return over(redis.connect(), policy);
    }

    private Idempotence over(IdempotenceStorage storage, IdempotencePolicy policy) {
        Idempotence idempotence = Idempotence.builder(storage)
                .namespace("orders")
                .policy(policy)
                .listener((event, which) -> events.add(event))
                .build();
        open.add(idempotence);
        return idempotence;
    }

    private Idempotence idempotence() {
        return idempotence(IdempotencePolicy.defaults());
    }

    private String work() {
        return "run " + runs.incrementAndGet();
    }

    // ---- saveIfAbsent and delete

    @Test
    void savesAnIdOnceUntilItIsDeleted() {
        Idempotence idempotence = idempotence();
        assertThat(idempotence.saveIfAbsent("order-1")).isTrue();
        assertThat(idempotence.saveIfAbsent("order-1")).isFalse();
        assertThat(idempotence().saveIfAbsent(IdempotenceId.of("order-1"))).isFalse();
        assertThat(idempotence.delete("order-1")).isTrue();
        assertThat(idempotence.delete("order-1")).isFalse();
        assertThat(idempotence.saveIfAbsent("order-1")).isTrue();
    }

    @Test
    void aSavedIdIsNeverTakenForAbandoned() {
        Idempotence idempotence = idempotence(IdempotencePolicy.builder()
                .lease(Duration.ofMillis(10))
                .onAbandoned(OnAbandoned.RE_EXECUTE)
                .build());
        assertThat(idempotence.saveIfAbsent("order-1")).isTrue();
        long start = System.nanoTime();
        await().until(() -> System.nanoTime() - start > Duration.ofMillis(50).toNanos());
        assertThat(idempotence.saveIfAbsent("order-1")).isFalse();
    }

    @Test
    void servicesInOneStorageDoNotMeet() {
        assertThat(idempotence().saveIfAbsent("order-1")).isTrue();
        Idempotence other =
                Idempotence.builder(redis.connect()).namespace("points").build();
        open.add(other);
        assertThat(other.saveIfAbsent("order-1")).isTrue();
    }

    @Test
    void invalidIdIsRefusedBeforeTheStorageIsCalled() {
        assertThatThrownBy(() -> idempotence().saveIfAbsent("a\nb")).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(
                        () -> Idempotence.builder(IdempotenceStorage.inMemory()).namespace("a b"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("namespace must be");
    }

    @Test
    void policyIsCheckedEarly() {
        IdempotencePolicy.Builder policy = IdempotencePolicy.builder();
        assertThatThrownBy(() -> policy.lease(Duration.ZERO)).hasMessageContaining("lease must be");
        assertThatThrownBy(() -> policy.retention(Duration.ofDays(1000))).hasMessageContaining("retention must be");
        assertThatThrownBy(() -> policy.status(102, Verdict.KEEP)).hasMessageContaining("got 102");
        assertThatThrownBy(() -> IdempotencePolicy.builder()
                        .lease(Duration.ofHours(2))
                        .retention(Duration.ofHours(1))
                        .build())
                .hasMessageContaining("retention (PT1H) must not be shorter than lease (PT2H)");
    }

    /** A handler or a consumer may use one ID for both, and for the request it serves. */
    @Test
    void savedExecutedAndRequestedIdsDoNotMeet() throws Exception {
        Idempotence idempotence = idempotence();
        IdempotentCall request = IdempotentCall.of(id);
        ClaimedExecution execution = (ClaimedExecution) idempotence.engine().claim(request, idempotence.policy());
        assertThat(idempotence.saveIfAbsent(id)).isTrue();
        assertThat(idempotence.execute(id, this::work)).isEqualTo("run 1");
        assertThat(idempotence.delete(id)).isTrue();
        assertThat(idempotence.engine().claim(request, idempotence.policy()))
                .isInstanceOfSatisfying(
                        Decision.Refuse.class,
                        refuse -> assertThat(refuse.refusal()).isEqualTo(Refusal.IN_PROGRESS));
        execution.finish(Verdict.KEEP, ClaimResult.noResult());
    }

    @Test
    void nullsAreRefusedAtTheDoor() {
        assertThatThrownBy(() -> Idempotence.over(null)).hasMessage("storage");
        assertThatThrownBy(() -> RedisIdempotenceStorage.using(null)).hasMessage("client");
        assertThatThrownBy(() -> idempotence().saveIfAbsent((String) null)).hasMessage("value");
    }

    // ---- execute

    @Test
    void executesOnceAndGivesTheResultAgain() throws Exception {
        assertThat(idempotence().execute(id, this::work)).isEqualTo("run 1");
        assertThat(idempotence().execute(id, this::work)).isEqualTo("run 1");
        assertThat(runs).hasValue(1);
        assertThat(events).containsExactly(IdempotenceEvent.CLAIMED, IdempotenceEvent.REPLAYED);
    }

    @Test
    void resultsGoThroughTheirCodec() throws Exception {
        ResultCodec<Integer> codec = ResultCodec.of(n -> new byte[] {n.byteValue()}, bytes -> (int) bytes[0]);
        assertThat(idempotence().execute(id, codec, () -> 42)).isEqualTo(42);
        assertThat(idempotence().execute(id, codec, () -> 43)).isEqualTo(42);
    }

    @Test
    void aFailureReleasesByDefault() throws Exception {
        assertThatThrownBy(() -> idempotence().execute(id, () -> {
                    work();
                    throw new IllegalStateException("down");
                }))
                .hasMessage("down");
        assertThat(idempotence().execute(id, this::work)).isEqualTo("run 2");
    }

    @Test
    void aFailureIsKeptWhereThePolicyOrTheWorkRequiresIt() throws Exception {
        Idempotence storing = idempotence(IdempotencePolicy.builder()
                .failureRule(FailureRule.STORE_EVERYTHING)
                .build());
        assertThatThrownBy(() -> storing.execute(id, () -> {
                    throw new IllegalStateException("down");
                }))
                .hasMessage("down");
        assertThat(refusalOf(() -> storing.execute(id, this::work))).isEqualTo(Refusal.RESULT_UNAVAILABLE);
        IdempotenceId other = IdempotenceId.of("other");
        assertThatThrownBy(() -> idempotence()
                        .execute(other, ResultCodec.text(), (IdempotentWork<String>) execution -> {
                            execution.keep();
                            throw new IllegalStateException("down");
                        }))
                .hasMessage("down");
        assertThat(refusalOf(() -> idempotence().execute(other, this::work))).isEqualTo(Refusal.RESULT_UNAVAILABLE);
        assertThat(runs).hasValue(0);
    }

    @Test
    void anUncertainOutcomeIsRefusedEverAfter() throws Exception {
        idempotence().execute(id, ResultCodec.text(), (IdempotentWork<String>) execution -> {
            execution.markUnknown();
            return work();
        });
        assertThat(refusalOf(() -> idempotence().execute(id, this::work))).isEqualTo(Refusal.OUTCOME_UNKNOWN);
        assertThat(runs).hasValue(1);
        assertThat(events).contains(IdempotenceEvent.UNKNOWN);
    }

    @Test
    void eachKindOfThreadHasItsName() throws Exception {
        Idempotence idempotence = idempotence();
        IdempotentCall call = IdempotentCall.of(id);
        idempotence().engine().claim(call, IdempotencePolicy.defaults());
        Duplicates.claim(idempotence, call, IdempotencePolicy.defaults(), Duration.ofMinutes(1));
        awaitDaemons("idempotence-renewals", "idempotence-polls");
        // A poll would find out first that the connection is dead, and then nothing would have been sent.
        Idempotence without = idempotence();
        without.execute(IdempotenceId.of("connected"), this::work);
        redis.kill();
        refusalOf(() -> without.execute(IdempotenceId.of("lost"), this::work));
        awaitDaemons("idempotence-give-backs");
    }

    private static void awaitDaemons(String... names) {
        await().until(() -> Stream.of(threads())
                .filter(Thread::isDaemon)
                .map(Thread::getName)
                .collect(java.util.stream.Collectors.toSet())
                .containsAll(List.of(names)));
    }

    /** T9 */
    @Test
    void aHandlerLongerThanItsLeaseKeepsItsClaim() throws Exception {
        Idempotence idempotence = idempotence(IdempotencePolicy.builder()
                // Renewed soon enough although the machine pauses for three seconds.
                .lease(Duration.ofSeconds(5))
                .onAbandoned(OnAbandoned.RE_EXECUTE)
                .build());
        Idempotence other = idempotence(idempotence.policy());
        String result = idempotence.execute(id, () -> {
            long start = System.nanoTime();
            await().pollInterval(Duration.ofMillis(20)).until(() -> {
                assertThat(refusalOf(() -> other.execute(id, this::work))).isEqualTo(Refusal.IN_PROGRESS);
                return System.nanoTime() - start > Duration.ofMillis(5_500).toNanos();
            });
            return work();
        });
        assertThat(result).isEqualTo("run 1");
        assertThat(other.execute(id, this::work)).isEqualTo("run 1");
        assertThat(runs).hasValue(1);
    }

    /** Each policy's lease counts, whatever else runs. */
    @Test
    void aShortLeaseBesideALongOneIsRenewedInTime() throws Exception {
        List<StorageKey> renewed = new CopyOnWriteArrayList<>();
        Idempotence idempotence = over(
                new FaultyStorage(redis.connect()).before((call, key) -> {
                    if (call == FaultyStorage.Call.RENEW) {
                        renewed.add(key);
                    }
                }),
                IdempotencePolicy.defaults());
        idempotence
                .engine()
                .claim(
                        IdempotentCall.of(IdempotenceId.of("long")),
                        IdempotencePolicy.builder().lease(Duration.ofHours(1)).build());
        idempotence
                .engine()
                .claim(
                        IdempotentCall.of(id),
                        IdempotencePolicy.builder()
                                .lease(Duration.ofMillis(500))
                                .build());
        // Looks at the pace of the long lease would take many times as long as this waits.
        await().until(() -> renewed.size() >= 10);
        assertThat(renewed).containsOnly(StorageKey.of("orders", "", "", id));
    }

    /** T14 */
    @Test
    void renewalStopsWithAnAlarmWhenTheClaimIsLost() throws Exception {
        IdempotencePolicy policy =
                IdempotencePolicy.builder().lease(Duration.ofMillis(400)).build();
        List<StorageKey> renewed = new CopyOnWriteArrayList<>();
        Idempotence idempotence = over(
                new FaultyStorage(redis.connect()).before((call, key) -> {
                    if (call == FaultyStorage.Call.RENEW) {
                        renewed.add(key);
                    }
                }),
                policy);
        StorageKey other = StorageKey.of("orders", "", "", IdempotenceId.of("other"));
        idempotence.execute(id, () -> {
            try (Jedis jedis = redis.jedis()) {
                jedis.flushAll();
            }
            await().until(() -> events.contains(IdempotenceEvent.LOST));
            renewed.clear();
            idempotence.engine().claim(IdempotentCall.of(IdempotenceId.of("other")), policy);
            await().until(() -> renewed.size() >= 5);
            return work();
        });
        assertThat(renewed).containsOnly(other);
        assertThat(events.stream().filter(IdempotenceEvent.LOST::equals)).hasSize(1);
    }

    // ---- the storage fails

    /** P6 */
    @Test
    void nothingRunsWhileTheStorageIsDown() throws Exception {
        Idempotence idempotence = idempotence();
        redis.kill();
        assertThat(refusalOf(() -> idempotence.execute(id, this::work))).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        assertThatThrownBy(() -> idempotence.saveIfAbsent(id)).isInstanceOf(StorageUnavailableException.class);
        assertThat(runs).hasValue(0);
        assertThat(events).contains(IdempotenceEvent.STORAGE_ERROR);
        redis.restart();
        // In progress for a moment: the claims that may have been stored in vain are given back.
        await().ignoreException(ExecutionRefusedException.class)
                .until(() -> idempotence.execute(id, this::work).equals("run 1"));
    }

    private void damage(BiConsumer<Jedis, String> records) {
        try (Jedis jedis = redis.jedis()) {
            jedis.keys("*").forEach(key -> records.accept(jedis, key));
        }
    }

    /** T20 */
    @Test
    void anUnreadableRecordIsNeverExecuted() throws Exception {
        Idempotence idempotence = idempotence();
        idempotence.execute(id, this::work);
        damage((jedis, key) -> jedis.set(key, "not a record"));
        assertThat(refusalOf(() -> idempotence.execute(id, this::work))).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        assertThat(runs).hasValue(1);
    }

    /** T20 */
    @Test
    void aStoredResultThatCannotBeReadIsRefusedAndReported() throws Exception {
        Idempotence idempotence = idempotence();
        idempotence.execute(id, this::work);
        // The first byte of the result, which is behind the head of the record:
        // of a kind that this version does not know.
        damage((jedis, key) -> jedis.setrange(key, 54, "~"));
        assertThat(refusalOf(() -> idempotence.execute(id, this::work))).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        assertThat(runs).hasValue(1);
        assertThat(events)
                .containsExactly(IdempotenceEvent.CLAIMED, IdempotenceEvent.REPLAYED, IdempotenceEvent.STORAGE_ERROR);
    }

    @Test
    void closeStopsTheThread() throws Exception {
        Idempotence idempotence = idempotence();
        redis.kill();
        refusalOf(() -> idempotence.execute(id, this::work));
        assertThat(writers()).isPositive();
        idempotence.close();
        idempotence.close();
        await().until(() -> writers() == 0);
    }

    private static long writers() {
        return Stream.of(threads())
                .filter(thread -> thread.getName().equals("idempotence-give-backs"))
                .count();
    }

    private static Thread[] threads() {
        Thread[] threads = new Thread[Thread.activeCount() * 2];
        int count = Thread.enumerate(threads);
        return java.util.Arrays.copyOf(threads, count);
    }

    // ---- operations

    private String charge(IdempotentCall call) throws Exception {
        return idempotence().execute(call, IdempotencePolicy.defaults(), ResultCodec.text(), execution -> work());
    }

    @Test
    @DisplayName("P5: consumers and tenants have separate records")
    void operationsAndScopesKeepIdsApart() throws Exception {
        IdempotentCall charge = IdempotentCall.of("charge", id);
        assertThat(charge(charge)).isEqualTo("run 1");
        assertThat(charge(charge.withScope("acme"))).isEqualTo("run 2");
        assertThat(charge(IdempotentCall.of("ship", id))).isEqualTo("run 3");
        assertThat(idempotence().execute(id, this::work)).isEqualTo("run 4");
        assertThat(idempotence().engine().claim(charge, IdempotencePolicy.defaults()))
                .as("a transport's")
                .isInstanceOf(ClaimedExecution.class);
        assertThat(charge(charge)).isEqualTo("run 1");
        assertThat(charge(charge.withScope("acme"))).isEqualTo("run 2");
    }

    @Test
    @DisplayName("P5: another message under the same ID never runs and never replays")
    void anotherContentUnderTheSameIdIsRefused() throws Exception {
        IdempotentCall charge = IdempotentCall.of("charge", id).withFingerprint(Fingerprint.ofContent(new byte[] {5}));
        charge(charge);
        IdempotentCall other = charge.withFingerprint(Fingerprint.ofContent(new byte[] {6}));
        assertThat(refusalOf(() -> charge(other))).isEqualTo(Refusal.KEY_REUSED);
        assertThat(Fingerprint.ofContent(new byte[] {1}, new byte[] {2}))
                .isNotEqualTo(Fingerprint.ofContent(new byte[] {1, 2}));
        assertThat(runs).hasValue(1);
    }

    @Test
    void anOperationHasItsPolicy() {
        IdempotentCall charge = IdempotentCall.of("charge", id);
        IdempotencePolicy keepsAll = IdempotencePolicy.builder()
                .failureRule(FailureRule.STORE_EVERYTHING)
                .build();
        IdempotentWork<String> fails = execution -> {
            runs.incrementAndGet();
            throw new IllegalStateException("no money");
        };
        assertThatThrownBy(() -> idempotence().execute(charge, keepsAll, ResultCodec.text(), fails))
                .isInstanceOf(IllegalStateException.class);
        assertThat(refusalOf(() -> idempotence().execute(charge, keepsAll, ResultCodec.text(), fails)))
                .isEqualTo(Refusal.RESULT_UNAVAILABLE);
        assertThat(runs).hasValue(1);
    }

    @Test
    void messagesNeverShowTheId() {
        Idempotence idempotence = idempotence();
        redis.kill();
        assertThatThrownBy(() -> idempotence.execute(IdempotenceId.of("secret-" + UUID.randomUUID()), this::work))
                .hasMessageNotContaining("secret");
    }
}
