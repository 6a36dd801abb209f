package io.idempotence.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;
import static org.assertj.core.api.Assertions.tuple;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import io.idempotence.server.IdempotenceAdmin.Deleted;
import io.idempotence.server.IdempotenceAdmin.Resolved;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.redis.RedisOfAClass;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.MovingClock;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.WriteResult;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import redis.clients.jedis.Jedis;

/** Tests of what operators do, on a real Redis. */
class IdempotenceAdminTest {
    private static final Duration LEASE = Duration.ofMillis(30);
    private static final Duration RETENTION = Duration.ofHours(1);
    private static final SecureRandom RANDOM = new SecureRandom();

    @RegisterExtension
    private static final RedisOfAClass redis = new RedisOfAClass();

    private final String namespace = "n" + UUID.randomUUID();
    private RedisIdempotenceStorage storage;
    private IdempotenceAdmin admin;

    @BeforeEach
    void open() {
        storage = redis.connect();
        admin = IdempotenceAdmin.of(storage, namespace);
    }

    @AfterEach
    void close() {
        storage.close();
    }

    private IdempotenceRecord seen(StorageKey key) {
        return admin.find(key).orElseThrow();
    }

    @Test
    void listsWhatHasBeenAbandonedForSomeTime() {
        StorageKey abandoned = abandon(newId()).key();
        claim(admin.executeKey(newId()), RETENTION);

        await().untilAsserted(() -> assertThat(admin.listUncertain(Duration.ofMillis(200)))
                .singleElement()
                .satisfies(record -> {
                    assertThat(record.key()).isEqualTo(abandoned);
                    assertThat(record.state()).isEqualTo(State.ABANDONED);
                    assertThat(record.fence()).isOne();
                    assertThat(record.uncertainFor()).isBetween(Duration.ofMillis(200), Duration.ofMinutes(1));
                    assertThat(record.retentionLeft()).isBetween(Duration.ofMinutes(59), RETENTION);
                }));
        assertThat(admin.listUncertain(Duration.ofMinutes(5))).isEmpty();
    }

    @Test
    void listsWhatIsUnknown() {
        Claim claim = claim(admin.executeKey(newId()), RETENTION);
        storage.markUnknown(claim, RETENTION);

        assertThat(admin.listUncertain(Duration.ZERO))
                .extracting(IdempotenceRecord::key, IdempotenceRecord::state)
                .containsExactly(tuple(claim.key(), State.UNKNOWN));
    }

    /** T17 */
    @Test
    void whatWasAppliedNeverRunsAgain() {
        IdempotenceId id = newId();
        StorageKey key = abandon(id).key();

        assertThat(admin.withRetention(Duration.ofMinutes(10)).resolve(seen(key), Resolution.APPLIED))
                .isEqualTo(Resolved.DONE);

        assertThat(admin.find(key)).hasValueSatisfying(record -> {
            assertThat(record.state()).isEqualTo(State.COMPLETED);
            assertThat(record.retentionLeft())
                    .as("never shorter than it was")
                    .isBetween(Duration.ofMinutes(59), RETENTION);
        });
        assertThat(refusalOf(id)).isEqualTo(Refusal.RESULT_UNAVAILABLE);
    }

    /** T17, T8 */
    @Test
    void whatWasNotAppliedRunsAgain() throws Exception {
        IdempotenceId id = newId();
        StorageKey key = abandon(id).key();
        assertThat(refusalOf(id)).isEqualTo(Refusal.OUTCOME_UNKNOWN);

        assertThat(admin.resolve(seen(key), Resolution.NOT_APPLIED)).isEqualTo(Resolved.DONE);

        assertThat(admin.find(key)).hasValueSatisfying(record -> {
            assertThat(record.state()).isEqualTo(State.RELEASED);
            assertThat(record.retentionLeft()).isBetween(Duration.ofHours(23), Duration.ofHours(24));
        });
        try (Idempotence idempotence = idempotence()) {
            assertThat(idempotence.execute(id, ResultCodec.text(), execution -> "fence " + execution.fence()))
                    .isEqualTo("fence 2");
        }
    }

    @Test
    void resolvesOnlyWhatWasLookedAt() {
        Claim first = abandon(newId());
        IdempotenceRecord seen = seen(first.key());
        storage.claim(request(first.key(), LEASE, true));
        awaitAbandoned(first.key());

        assertThat(admin.resolve(seen, Resolution.NOT_APPLIED)).isEqualTo(Resolved.CHANGED);

        assertThat(admin.find(first.key())).hasValueSatisfying(record -> {
            assertThat(record.state()).isEqualTo(State.ABANDONED);
            assertThat(record.fence()).isEqualTo(2);
        });
    }

    /** As by a driver that got no reply. */
    @ParameterizedTest
    @EnumSource
    void whatWasSentTwiceIsReportedAsResolved(Resolution resolution) {
        FaultyStorage twice = new FaultyStorage(storage);
        IdempotenceAdmin operator = IdempotenceAdmin.of(twice, namespace);
        IdempotenceRecord seen = seen(abandon(newId()).key());
        twice.before((call, key) -> {
            if (call == FaultyStorage.Call.RESOLVE) {
                storage.resolve(key, seen.fence(), resolution, RETENTION);
            }
        });

        assertThat(operator.resolve(seen, resolution)).isEqualTo(Resolved.ALREADY);
        Resolution other = resolution == Resolution.APPLIED ? Resolution.NOT_APPLIED : Resolution.APPLIED;
        assertThat(operator.resolve(seen, other)).isEqualTo(Resolved.CHANGED);
    }

    @Test
    void lateOwnerWhoCompletesWinsOverTheOperator() {
        Claim late = abandon(newId());
        IdempotenceRecord seen = seen(late.key());
        storage.complete(late, new byte[] {1, 2}, RETENTION);

        assertThat(admin.resolve(seen, Resolution.NOT_APPLIED)).isEqualTo(Resolved.CHANGED);

        assertThat(admin.find(late.key()))
                .hasValueSatisfying(record -> assertThat(record.state()).isEqualTo(State.COMPLETED));
    }

    /** P3 */
    @Test
    void lateOwnerIsFencedOnceAnOperatorHasDecided() {
        Claim late = abandon(newId());
        admin.resolve(seen(late.key()), Resolution.APPLIED);

        assertThat(storage.complete(late, new byte[] {1, 2}, RETENTION)).isInstanceOf(WriteResult.Fenced.class);
    }

    /** It was deleted while its operation ran, and the next duplicate ran the operation a second time. */
    @Test
    void deletesNothingThatIsClaimedAgain() {
        Claim released = claim(admin.executeKey(newId()), RETENTION);
        storage.release(released, RETENTION);
        IdempotenceRecord seen = seen(released.key());
        claim(released.key(), RETENTION);

        Deleted deleted = admin.delete(seen);

        assertThat(deleted.isDone()).isFalse();
        assertThat(deleted.now())
                .hasValueSatisfying(now -> assertThat(now.state()).isEqualTo(State.IN_PROGRESS));
        assertThat(deleted.message()).contains("nothing was deleted", "is in-progress now");
        assertThat(seen(released.key()).fence()).isEqualTo(2);
    }

    @Test
    void resolvesNothingThatIsCertain() {
        StorageKey running = claim(admin.executeKey(newId()), RETENTION).key();

        assertThat(admin.resolve(seen(running), Resolution.NOT_APPLIED)).isEqualTo(Resolved.NOT_UNCERTAIN);
        assertThat(admin.find(running))
                .hasValueSatisfying(record -> assertThat(record.state()).isEqualTo(State.IN_PROGRESS));
    }

    @Test
    void findsAnIdInEachOfItsThreePlaces() throws Exception {
        IdempotenceId id = newId();
        try (Idempotence idempotence = idempotence()) {
            idempotence
                    .engine()
                    .claim(IdempotentCall.of(id).withScope("principal:alice"), IdempotencePolicy.defaults());
            assertThat(present(id)).containsExactly("alice");

            idempotence.execute(id, () -> "done");
            assertThat(present(id)).containsExactly("alice", "execute");

            idempotence.saveIfAbsent(id);
            assertThat(present(id)).containsExactly("alice", "execute", "saved");

            idempotence.engine().claim(IdempotentCall.of(id), IdempotencePolicy.defaults());
            assertThat(present(id)).containsExactly("alice", "execute", "saved", "nobody");
        }
        open();
        IdempotenceRecord saved = seen(admin.savedKey(id));
        assertThat(admin.delete(saved).isDone()).isTrue();
        assertThat(admin.delete(saved)).isEqualTo(new Deleted(false, Optional.empty()));
        assertThat(present(id)).containsExactly("alice", "execute", "nobody");
    }

    private List<String> present(IdempotenceId id) {
        List<String> present = new ArrayList<>();
        admin.find(admin.requestKey(id, "principal:alice")).ifPresent(record -> present.add("alice"));
        admin.find(admin.executeKey(id)).ifPresent(record -> present.add("execute"));
        admin.find(admin.savedKey(id)).ifPresent(record -> present.add("saved"));
        admin.find(admin.requestKey(id, "")).ifPresent(record -> present.add("nobody"));
        return present;
    }

    @Test
    void touchesNothingOfAnotherServiceOrApplication() {
        StorageKey other = StorageKey.of("other", "", "", newId());
        StorageKey noRecord = new StorageKey("session:1");
        try (Jedis jedis = redis.server().jedis()) {
            jedis.set(noRecord.value(), "theirs");

            for (StorageKey key : List.of(other, noRecord)) {
                assertThatIllegalArgumentException().isThrownBy(() -> admin.deleteUnreadable(key));
                assertThatIllegalArgumentException().isThrownBy(() -> admin.find(key));
            }
            claim(other, RETENTION);
            IdempotenceRecord theirs =
                    IdempotenceAdmin.of(storage, "other").find(other).orElseThrow();
            assertThatIllegalArgumentException().isThrownBy(() -> admin.resolve(theirs, Resolution.APPLIED));
            assertThatIllegalArgumentException().isThrownBy(() -> admin.delete(theirs));
            assertThat(jedis.get(noRecord.value())).isEqualTo("theirs");
        }
    }

    /** A null that counted as "not applied" would let the operation run again. */
    @Test
    void refusesNullAtTheDoor() {
        IdempotenceRecord seen = seen(abandon(newId()).key());

        assertThatNullPointerException().isThrownBy(() -> admin.resolve(seen, null));
        assertThatNullPointerException().isThrownBy(() -> admin.listUncertain(null));
        assertThatNullPointerException().isThrownBy(() -> admin.stats(null));
        assertThatNullPointerException().isThrownBy(() -> admin.withRetention(null));
        assertThatNullPointerException().isThrownBy(() -> IdempotenceAdmin.of(null, namespace));
        assertThatNullPointerException().isThrownBy(() -> IdempotenceAdmin.of(storage, null));
        assertThat(admin.find(seen.key()))
                .hasValueSatisfying(record -> assertThat(record.state()).isEqualTo(State.ABANDONED));
    }

    @Test
    void walksManyRecordsWithoutBlockingTheServer() {
        Set<StorageKey> all = new HashSet<>();
        for (int i = 0; i < 5_000; i++) {
            Claim claim = claim(admin.executeKey(newId()), i % 10 == 0 ? LEASE : RETENTION);
            all.add(claim.key());
            if (i % 10 > 4) {
                storage.complete(claim, ClaimResult.noResult(), RETENTION);
            }
        }
        await().until(() -> admin.listUncertain(Duration.ZERO).count() == 500);
        try (Jedis jedis = redis.server().jedis()) {
            jedis.configResetStat();

            assertThat(admin.list().map(IdempotenceRecord::key).collect(Collectors.toSet()))
                    .isEqualTo(all);
            IdempotenceAdmin.Stats stats = admin.stats(record -> {});

            assertThat(stats.counts())
                    .containsEntry(State.ABANDONED, 500L)
                    .containsEntry(State.COMPLETED, 2_500L)
                    .containsEntry(State.IN_PROGRESS, 2_000L)
                    .containsEntry(State.UNKNOWN, 0L)
                    .containsEntry(State.RELEASED, 0L);
            assertThat(jedis.info("commandstats")).contains("cmdstat_scan:").doesNotContain("cmdstat_keys:");
        }
    }

    @Test
    void statsContainTheOldestUncertainRecord() {
        assertThat(admin.stats(record -> {}).oldestUncertain()).isEmpty();
        StorageKey oldest = abandon(newId()).key();
        await().until(() -> admin.listUncertain(Duration.ofMillis(50)).count() == 1);
        abandon(newId());

        assertThat(admin.stats(record -> {}).oldestUncertain())
                .hasValueSatisfying(record -> assertThat(record.key()).isEqualTo(oldest));
    }

    @Test
    void countsTimeByTheStoragesClockToTheMillisecond() {
        MovingClock clock = new MovingClock();
        IdempotenceStorage memory = IdempotenceStorage.inMemory(10, clock);
        IdempotenceAdmin inMemory = IdempotenceAdmin.of(memory, namespace);
        memory.claim(request(inMemory.executeKey(newId()), LEASE, false));
        clock.advance(LEASE.plusMillis(5));
        memory.claim(request(inMemory.executeKey(newId()), LEASE, false));
        clock.advance(LEASE);

        Duration older = LEASE.plusMillis(5);
        assertThat(inMemory.listUncertain(older)).hasSize(1);
        assertThat(inMemory.listUncertain(older.plusMillis(1))).isEmpty();
        assertThat(inMemory.listUncertain(Duration.ZERO)).hasSize(2);
        List<StorageKey> progress = new ArrayList<>();
        assertThat(inMemory.stats(record -> progress.add(record.key())).oldestUncertain())
                .hasValueSatisfying(record -> assertThat(record.uncertainFor()).isEqualTo(older));
        assertThat(progress).hasSize(2);
    }

    @Test
    void retentionOfWhatIsResolvedIsAtLeastAMillisecond() {
        StorageKey key = abandon(newId()).key();
        assertThat(admin.withRetention(Duration.ofMillis(1)).resolve(seen(key), Resolution.APPLIED))
                .isEqualTo(Resolved.DONE);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> admin.withRetention(Duration.ofNanos(999_999)))
                .withMessageContaining("at least 1 ms");
    }

    private Idempotence idempotence() {
        return Idempotence.builder(storage).namespace(namespace).build();
    }

    private Refusal refusalOf(IdempotenceId id) {
        // Not closed: that would close the storage.
        return Refusals.refusalOf(() -> idempotence().execute(id, () -> "it ran"));
    }

    private Claim abandon(IdempotenceId id) {
        Claim claim = claim(admin.executeKey(id), LEASE);
        awaitAbandoned(claim.key());
        return claim;
    }

    private void awaitAbandoned(StorageKey key) {
        await().pollInterval(Duration.ofMillis(5))
                .until(() -> admin.find(key).orElseThrow().state() == State.ABANDONED);
    }

    private Claim claim(StorageKey key, Duration lease) {
        return ((ClaimResult.Claimed) storage.claim(request(key, lease, false))).claim();
    }

    private static ClaimRequest request(StorageKey key, Duration lease, boolean takeOver) {
        return new ClaimRequest(key, Fingerprint.NONE, Owner.random(RANDOM), lease, RETENTION, takeOver);
    }

    private static IdempotenceId newId() {
        return new IdempotenceId(UUID.randomUUID().toString());
    }
}
