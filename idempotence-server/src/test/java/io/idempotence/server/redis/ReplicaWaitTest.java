package io.idempotence.server.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import io.idempotence.server.ExecutionRefusedException;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.IdempotenceListener.StorageState;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.Refusals;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import io.idempotence.server.storage.WriteResult;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.regex.Pattern;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import redis.clients.jedis.Jedis;

/** Claims and ends that replicas must have, while the replica hangs. */
@Tag("redis-7")
@Tag("jedis")
class ReplicaWaitTest {
    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName("P6: without the required replicas a claim fails and is given back, and another owner's succeeds")
    void aClaimWithoutItsReplicasFails() {
        try (EmbeddedRedis primary = EmbeddedRedis.start("--appendonly", "yes");
                EmbeddedRedis replica = EmbeddedRedis.startReplicaOf(primary);
                RedisIdempotenceStorage storage = replicated(primary)) {
            StorageKey key = Claims.newKey();
            var request = Claims.request(key);
            replica.pause();

            assertThatThrownBy(() -> storage.claim(request))
                    .isInstanceOf(StorageUnavailableException.class)
                    .hasMessageContaining("0 of 1 replicas have the write");

            assertThat(storage.find(key).orElseThrow().state()).isEqualTo(State.RELEASED);

            replica.resume();
            await().ignoreExceptions().until(() -> storage.claim(Claims.request(key)) instanceof ClaimResult.Claimed);
            assertThat(storage.find(key).orElseThrow().state()).isEqualTo(State.IN_PROGRESS);
            // A refused owner has no claim any more.
            assertThat(storage.claim(request)).isInstanceOf(ClaimResult.InProgress.class);
        }
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName("T7: a take-over that its replicas do not have leaves the record abandoned, as it was")
    void aTakeOverWithoutItsReplicasStaysOne() {
        try (EmbeddedRedis primary = EmbeddedRedis.start("--appendonly", "yes");
                EmbeddedRedis replica = EmbeddedRedis.startReplicaOf(primary);
                RedisIdempotenceStorage alone = primary.connect();
                RedisIdempotenceStorage storage = replicated(primary)) {
            StorageKey key = Claims.newKey();
            alone.renew(Claims.claim(alone, key), Duration.ofMillis(1));
            await().until(() -> alone.find(key).orElseThrow().state() == State.ABANDONED);
            replica.pause();

            assertThatThrownBy(() -> storage.claim(Claims.takeOver(key)))
                    .isInstanceOf(StorageUnavailableException.class);

            await().until(() -> alone.find(key).orElseThrow().state() == State.ABANDONED);
            assertThat(alone.claim(Claims.takeOver(key)))
                    .isInstanceOfSatisfying(
                            ClaimResult.Claimed.class,
                            claimed -> assertThat(claimed.takenOver()).isTrue());
            replica.resume();
        }
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName("P6: an ID that was refused for want of replicas, for longer than its lease, runs when they are back")
    void anIdThatWasRefusedForWantOfReplicasRunsWhenTheyAreBack() {
        IdempotenceId id = IdempotenceId.of("refused");
        try (EmbeddedRedis primary = EmbeddedRedis.start("--appendonly", "yes");
                EmbeddedRedis replica = EmbeddedRedis.startReplicaOf(primary);
                RedisIdempotenceStorage storage = replicated(primary);
                Idempotence idempotence = Idempotence.builder(storage)
                        .policy(IdempotencePolicy.builder()
                                .lease(Duration.ofSeconds(1))
                                .build())
                        .build()) {
            replica.pause();
            assertThat(Refusals.refusalOf(() -> idempotence.execute(id, () -> "run")))
                    .isEqualTo(Refusal.STORAGE_UNAVAILABLE);

            IdempotenceAdmin admin = IdempotenceAdmin.of(storage, "default");
            await().until(
                            () -> admin.find(admin.executeKey(id)).orElseThrow().state(),
                            state -> state != State.IN_PROGRESS);
            assertThat(admin.listUncertain(Duration.ZERO)).isEmpty();
            replica.resume();

            await().ignoreExceptionsInstanceOf(ExecutionRefusedException.class)
                    .until(() -> idempotence.execute(id, () -> "run").equals("run"));
        }
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName(
            "T21: an ID that was given back for want of replicas does not count as seen, and its owner does not claim it again")
    void anIdThatWasGivenBackForWantOfReplicasIsNotCalledSeen() {
        IdempotenceId id = IdempotenceId.of("nobody saved it");
        IdempotenceId before = IdempotenceId.of("saved before");
        List<IdempotenceEvent> events = new CopyOnWriteArrayList<>();
        try (EmbeddedRedis primary = EmbeddedRedis.start("--appendonly", "yes");
                EmbeddedRedis replica = EmbeddedRedis.startReplicaOf(primary);
                // The replica must have some of the writes in time.
                RedisIdempotenceStorage storage = replicated(primary, Duration.ofSeconds(4));
                Idempotence other = Idempotence.over(primary.connect())) {
            FaultyStorage wire = new FaultyStorage(storage);
            Idempotence idempotence = Idempotence.builder(wire)
                    .listener((event, which) -> events.add(event))
                    .build();
            replica.pause();
            assertThatThrownBy(() -> idempotence.saveIfAbsent(id))
                    .isInstanceOf(StorageUnavailableException.class)
                    .hasMessageContaining("0 of 1 replicas have the write");
            assertThat(events).containsExactly(IdempotenceEvent.STORAGE_ERROR);
            assertThat(wire.count(FaultyStorage.Call.CLAIM))
                    .as("a second claim could be freed by a release that comes late")
                    .isEqualTo(1);

            // Of one that somebody else has, the second try decides: the replica has caught up by then.
            assertThat(other.saveIfAbsent(before)).isTrue();
            wire.before((call, key) -> {
                if (call == FaultyStorage.Call.CLAIM && wire.count(call) == 3) {
                    replica.resume();
                    primary.awaitCopied();
                }
            });
            assertThat(idempotence.saveIfAbsent(before)).isFalse();
            assertThat(wire.count(FaultyStorage.Call.CLAIM)).isEqualTo(3);

            assertThat(idempotence.saveIfAbsent(id)).isTrue();
            assertThat(idempotence.saveIfAbsent(id)).isFalse();
        }
    }

    /** Probes and health checks delete a record that does not exist. */
    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName("P6: storage without the required replicas is reported as unavailable until they are back")
    void withoutItsReplicasTheStorageIsUnavailable() {
        IdempotenceId id = IdempotenceId.of("refused");
        StorageStates states = new StorageStates();
        try (EmbeddedRedis primary = EmbeddedRedis.start("--appendonly", "yes");
                EmbeddedRedis replica = EmbeddedRedis.startReplicaOf(primary)) {
            FaultyStorage wire = new FaultyStorage(replicated(primary));
            try (Idempotence idempotence =
                    Idempotence.builder(wire).listener(states).build()) {
                awaitNothingToCopy(primary);
                replica.pause();
                assertThatThrownBy(() -> wire.delete(Claims.newKey()))
                        .isInstanceOf(StorageUnavailableException.class)
                        .hasMessageContaining("0 of 1 replicas have the write");
                await().until(() -> {
                    assertThat(Refusals.refusalOf(() -> idempotence.execute(id, () -> "run")))
                            .isEqualTo(Refusal.STORAGE_UNAVAILABLE);
                    return !states.reported().isEmpty();
                });

                long probes = wire.count(FaultyStorage.Call.DELETE);
                await().until(() -> wire.count(FaultyStorage.Call.DELETE) > probes + 4);
                assertThat(states.reported()).containsExactly(StorageState.UNAVAILABLE);
                replica.resume();
                await().until(() ->
                        states.reported().equals(List.of(StorageState.UNAVAILABLE, StorageState.AVAILABLE)));
                await().ignoreExceptionsInstanceOf(ExecutionRefusedException.class)
                        .until(() -> idempotence.execute(id, () -> "run").equals("run"));
            }
        }
    }

    /** From another connection, too, and although the script writes nothing the second time. */
    @Test
    @Execution(ExecutionMode.CONCURRENT)
    @DisplayName("T11, T22: an end that no replica has is not done because it is sent again")
    void anEndWithoutItsReplicasIsNotDoneWhenSentAgain() {
        try (EmbeddedRedis primary = EmbeddedRedis.start("--appendonly", "yes");
                EmbeddedRedis replica = EmbeddedRedis.startReplicaOf(primary)) {
            StorageKey completed = Claims.newKey();
            StorageKey released = Claims.newKey();
            StorageKey unknown = Claims.newKey();
            try (RedisIdempotenceStorage alone = primary.connect();
                    RedisIdempotenceStorage first = replicated(primary);
                    RedisIdempotenceStorage second = replicated(primary)) {
                Claim toComplete = Claims.claim(alone, completed);
                Claim toRelease = Claims.claim(alone, released);
                Claim toMark = Claims.claim(alone, unknown);
                primary.awaitCopied();
                replica.pause();
                for (RedisIdempotenceStorage storage : List.of(first, second)) {
                    for (ThrowingCallable end : List.<ThrowingCallable>of(
                            () -> storage.complete(toComplete, new byte[] {7}, Claims.RETENTION),
                            () -> storage.release(toRelease, Claims.RETENTION),
                            () -> storage.markUnknown(toMark, Claims.RETENTION))) {
                        assertThatThrownBy(end)
                                .isInstanceOf(StorageUnavailableException.class)
                                .hasMessageContaining("0 of 1 replicas have the write");
                    }
                }
                replica.resume();
                await().ignoreExceptions()
                        .until(() -> second.complete(toComplete, new byte[] {7}, Claims.RETENTION)
                                instanceof WriteResult.Done);
            }
        }
    }

    private static RedisIdempotenceStorage replicated(EmbeddedRedis primary) {
        return replicated(primary, Duration.ofMillis(300));
    }

    private static RedisIdempotenceStorage replicated(EmbeddedRedis primary, Duration maxWait) {
        return EmbeddedRedis.builder(primary.address())
                .waitForReplicas(1, maxWait)
                .build();
    }

    /** Until a replica would count as up to date although it hangs, because nothing new is written. */
    private static void awaitNothingToCopy(EmbeddedRedis primary) {
        Pattern copied = Pattern.compile("(?s)state=online,offset=(\\d+),.*master_repl_offset:\\1\\D");
        try (Jedis jedis = primary.jedis()) {
            await().until(() -> copied.matcher(jedis.info("replication")).find());
        }
    }
}
