package io.idempotence.server.jdbc;

import static io.idempotence.server.jdbc.Effects.assertAppliedWithoutResult;
import static io.idempotence.server.jdbc.Effects.begin;
import static io.idempotence.server.jdbc.Effects.createTable;
import static io.idempotence.server.jdbc.Effects.effects;
import static io.idempotence.server.jdbc.Effects.run;
import static io.idempotence.server.jdbc.Effects.storage;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.WriteResult;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The effect of an ID is committed once, with its mark, or not at all. */
class JdbcInTransactionTest {
    private final StorageKey key = Claims.newKey();

    @ParameterizedTest
    @EnumSource
    void executionThatWasInterruptedBeforeItsCommitIsTakenOver(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        Claim claim = Claims.claim(storage, key);
        try (Connection business = begin(databases)) {
            storage.markApplied(business, claim);
            business.rollback();
        }
        assertThat(storage.claim(Claims.request(key))).isInstanceOf(ClaimResult.InProgress.class);
        assertThat(storage.renew(claim, Claims.SHORT)).isEqualTo(new WriteResult.Done());
        databases.letPass(Claims.SHORT);

        assertThat(storage.find(key).orElseThrow().state()).isEqualTo(State.ABANDONED);
        ClaimResult.Claimed heir = (ClaimResult.Claimed) storage.claim(Claims.request(key));
        assertThat(heir.takenOver()).isTrue();
        assertThat(heir.claim().fence()).isEqualTo(2);
        run(databases, storage, heir.claim());
        assertThat(effects(databases, key)).isEqualTo(1);
    }

    /** Nobody can tell whether they took effect: those of plain mode set no marks, and plain mode sees none. */
    @ParameterizedTest
    @EnumSource
    void abandonedClaimsOfTheOtherModeAreTakenOverOnlyIfThePolicyAllowsItInTransaction(Databases databases) {
        JdbcIdempotenceStorage inTransaction = storage(databases);
        JdbcIdempotenceStorage plain = databases.storage().build();
        StorageKey other = Claims.newKey();
        StorageKey third = Claims.newKey();
        plain.renew(Claims.claim(plain, key), Claims.SHORT);
        plain.renew(Claims.claim(plain, third), Claims.SHORT);
        inTransaction.renew(Claims.claim(inTransaction, other), Claims.SHORT);
        databases.letPass(Claims.SHORT);

        assertThat(inTransaction.claim(Claims.request(key))).isInstanceOf(ClaimResult.Abandoned.class);
        assertThat(plain.claim(Claims.takeOver(other))).isInstanceOf(ClaimResult.Abandoned.class);
        assertThat(plain.claim(Claims.takeOver(key))).isInstanceOf(ClaimResult.Claimed.class);
        assertThat(inTransaction.claim(Claims.takeOver(third))).isInstanceOf(ClaimResult.Claimed.class);
        ClaimResult.Claimed heir = (ClaimResult.Claimed) inTransaction.claim(Claims.request(other));
        inTransaction.renew(heir.claim(), Claims.SHORT);
        databases.letPass(Claims.SHORT);
        assertThat(plain.claim(Claims.takeOver(other))).isInstanceOf(ClaimResult.Abandoned.class);
    }

    @ParameterizedTest
    @EnumSource
    void executionThatWasInterruptedAfterItsCommitNeverRunsAgain(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        Claim claim = Claims.claim(storage, key, Claims.SHORT);
        run(databases, storage, claim);
        databases.letPass(Claims.SHORT);

        assertThat(storage.find(key).orElseThrow().state()).isEqualTo(State.COMPLETED);
        assertThat(storage.resolve(key, 1, Resolution.NOT_APPLIED, Claims.RETENTION))
                .isFalse();
        assertAppliedWithoutResult(storage.claim(Claims.request(key)));
        assertAppliedWithoutResult(storage.claim(Claims.request(key)));
        assertThat(storage.find(key).orElseThrow().state()).isEqualTo(State.COMPLETED);
        assertThat(storage.claim(new ClaimRequest(
                        key,
                        Fingerprint.of(new byte[] {
                            1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                            0
                        }),
                        new Owner(1, 2),
                        Claims.LEASE,
                        Claims.RETENTION,
                        true)))
                .isInstanceOf(ClaimResult.KeyReused.class);
    }

    @Test
    void corruptMarkNeverRunsIsLeftOutOfListsAndCanBeDeleted() throws Exception {
        Databases databases = Databases.POSTGRESQL;
        JdbcIdempotenceStorage storage = storage(databases);
        String namespace = "corrupt-marks";
        StorageKey damaged = Claims.newKey(namespace);
        StorageKey sound = Claims.newKey(namespace);
        run(databases, storage, Claims.claim(storage, damaged, Claims.SHORT));
        Claims.claim(storage, sound);
        databases.letPass(Claims.SHORT);
        databases.execute("UPDATE idempotence_applied SET fingerprint = '\\x01' WHERE id = '" + damaged.value() + "'");

        assertThatThrownBy(() -> storage.claim(Claims.request(damaged))).isInstanceOf(CorruptRecordException.class);
        assertThatThrownBy(() -> storage.find(damaged)).isInstanceOf(CorruptRecordException.class);
        assertThat(storage.list(namespace)).extracting(IdempotenceRecord::key).containsExactly(sound);
        assertThat(storage.deleteUnchanged(damaged, null)).isTrue();
        assertThat(Claims.claim(storage, damaged).fence()).isEqualTo(1);
    }

    @ParameterizedTest
    @EnumSource
    void markedExecutionIsWaitedForAndItsResultIsReplayed(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        Claim claim = Claims.claim(storage, key);
        run(databases, storage, claim);

        assertThat(storage.claim(Claims.request(key))).isInstanceOf(ClaimResult.InProgress.class);
        assertThat(storage.complete(claim, new byte[] {2, 7}, Claims.RETENTION)).isEqualTo(new WriteResult.Done());
        assertThat(((ClaimResult.Completed) storage.claim(Claims.request(key))).result())
                .containsExactly(2, 7);
    }

    @ParameterizedTest
    @EnumSource
    void appliedExecutionNeverRunsAgainWhateverIsInItsRecord(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        Claim released = Claims.claim(storage, key);
        run(databases, storage, released);
        storage.release(released, Claims.RETENTION);
        assertAppliedWithoutResult(storage.claim(Claims.request(key)));

        StorageKey second = Claims.newKey();
        Claim unknown = Claims.claim(storage, second);
        run(databases, storage, unknown);
        storage.markUnknown(unknown, Claims.RETENTION);
        assertAppliedWithoutResult(storage.claim(Claims.request(second)));

        StorageKey third = Claims.newKey();
        run(databases, storage, Claims.claim(storage, third));
        databases.execute("DELETE FROM idempotence_record WHERE id = '" + third.value() + "'");
        assertThat(storage.find(third).orElseThrow().state()).isEqualTo(State.COMPLETED);
        assertAppliedWithoutResult(storage.claim(Claims.request(third)));
        assertAppliedWithoutResult(storage.claim(Claims.request(third)));

        assertThat(storage.delete(third)).isTrue();
        assertThat(storage.find(third)).isEmpty();
        assertThat(Claims.claim(storage, third).fence()).isEqualTo(1);
    }

    @ParameterizedTest
    @EnumSource
    void recordThatWasReadIsDeletedWithItsMark(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        run(databases, storage, Claims.claim(storage, key));
        assertThat(storage.deleteUnchanged(key, storage.find(key).orElseThrow()))
                .isTrue();
        assertThat(Claims.claim(storage, key).fence()).isEqualTo(1);

        StorageKey second = Claims.newKey();
        run(databases, storage, Claims.claim(storage, second));
        databases.execute("DELETE FROM idempotence_record WHERE id = '" + second.value() + "'");
        assertThat(storage.deleteUnchanged(second, storage.find(second).orElseThrow()))
                .isTrue();
        assertThat(Claims.claim(storage, second).fence()).isEqualTo(1);
    }

    private static JdbcIdempotenceStorage spied(Databases databases, SpyDataSource spy) {
        createTable(databases);
        return Databases.storage(spy).createIfMissing().inTransaction().build();
    }

    /** It was reported as changed, because it had lost its row. */
    @ParameterizedTest
    @EnumSource
    void deadlockBetweenTheDeletionsOfARecordAndItsMarkIsRepeated(Databases databases) throws Exception {
        SpyDataSource spy = new SpyDataSource(databases.pool());
        JdbcIdempotenceStorage storage = spied(databases, spy);
        Claim claim = Claims.claim(storage, key);
        run(databases, storage, claim);
        storage.complete(claim, new byte[1], Claims.RETENTION);
        IdempotenceRecord seen = storage.find(key).orElseThrow();

        Runnable deadlock = () -> spy.failNext(new SQLException("deadlock", "40001", 1213));
        spy.afterNext.set(() -> spy.afterNext.set(deadlock));
        assertThat(storage.deleteUnchanged(key, seen)).isTrue();

        assertThat(storage.find(key)).isEmpty();
    }

    /** It took effect after the operator looked. */
    @ParameterizedTest
    @EnumSource
    void recordThatWasAppliedAfterALookIsNotDeleted(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        Claim claim = Claims.claim(storage, key);
        IdempotenceRecord seen = storage.find(key).orElseThrow();
        run(databases, storage, claim);
        storage.release(claim, Claims.RETENTION);

        assertThat(storage.deleteUnchanged(key, seen)).isFalse();

        assertAppliedWithoutResult(storage.claim(Claims.request(key)));
    }

    /** It was reported as deleted, and counted as completed afterwards. */
    @ParameterizedTest
    @EnumSource
    void recordThatIsAppliedWhileItIsDeletedIsNotReportedAsDeleted(Databases databases) throws Exception {
        SpyDataSource spy = new SpyDataSource(databases.pool());
        JdbcIdempotenceStorage storage = spied(databases, spy);
        Claim claim = Claims.claim(storage, key);
        IdempotenceRecord seen = storage.find(key).orElseThrow();

        JdbcIdempotenceStorage business = storage(databases);
        spy.afterNext.set(
                () -> assertThatCode(() -> run(databases, business, claim)).doesNotThrowAnyException());
        assertThat(storage.deleteUnchanged(key, seen)).isFalse();

        assertAppliedWithoutResult(storage.claim(Claims.request(key)));
    }

    @ParameterizedTest
    @EnumSource
    void expiredMarksAreDeletedInBatchesAndLiveOnesAreKept(Databases databases) throws Exception {
        createTable(databases);
        JdbcIdempotenceStorage storage = databases
                .storage()
                .table("swept_record")
                .appliedTable("swept_mark")
                .createIfMissing()
                .inTransaction()
                .build();
        StorageKey old = Claims.newKey();
        run(databases, storage, Claims.claim(storage, old));
        for (int i = 0; i < 2; i++) {
            run(databases, storage, Claims.claim(storage, Claims.newKey()));
        }
        databases.execute("UPDATE swept_record SET expires_at = 1");
        databases.execute("UPDATE swept_mark SET expires_at = 1");
        run(databases, storage, Claims.claim(storage, key));
        databases.execute("DELETE FROM swept_record WHERE id = '" + key.value() + "'");

        // The limit is that of each table.
        assertThat(storage.deleteExpired(2)).isEqualTo(4);
        assertThat(storage.deleteExpired(2)).isEqualTo(2);
        assertThat(storage.deleteExpired(2)).isZero();

        assertThat(databases.number("SELECT COUNT(*) FROM swept_record")).isZero();
        assertThat(databases.number("SELECT COUNT(*) FROM swept_mark")).isEqualTo(1);
        assertAppliedWithoutResult(storage.claim(Claims.request(key)));
        assertThat(Claims.claim(storage, old).fence()).isEqualTo(1);
        storage.delete(key);
        storage.delete(old);
    }

    @ParameterizedTest
    @EnumSource
    void aListShowsWhatWasAppliedAsCompleted(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        String namespace = "applied-" + databases.name();
        StorageKey running = Claims.newKey(namespace);
        StorageKey applied = Claims.newKey(namespace);
        StorageKey unknownButApplied = Claims.newKey(namespace);
        StorageKey brokenOff = Claims.newKey(namespace);
        StorageKey ofAnEarlierLife = Claims.newKey(namespace);
        run(databases, storage, Claims.claim(storage, running));
        run(databases, storage, Claims.claim(storage, applied, Claims.SHORT));
        Claim unknown = Claims.claim(storage, unknownButApplied);
        run(databases, storage, unknown);
        storage.markUnknown(unknown, Claims.RETENTION);
        Claims.claim(storage, brokenOff, Claims.SHORT);
        run(databases, storage, Claims.claim(storage, ofAnEarlierLife, Claims.SHORT));
        databases.execute("UPDATE idempotence_applied SET expires_at = 1 WHERE id = '" + ofAnEarlierLife.value() + "'");
        databases.letPass(Claims.SHORT);

        assertThat(storage.list(namespace))
                .extracting(IdempotenceRecord::key, IdempotenceRecord::state)
                .containsExactlyInAnyOrder(
                        tuple(running, State.IN_PROGRESS),
                        tuple(applied, State.COMPLETED),
                        tuple(unknownButApplied, State.COMPLETED),
                        tuple(brokenOff, State.ABANDONED),
                        tuple(ofAnEarlierLife, State.ABANDONED));
        assertThat(IdempotenceAdmin.of(storage, namespace).listUncertain(Duration.ZERO))
                .extracting(IdempotenceRecord::key)
                .containsExactlyInAnyOrder(brokenOff, ofAnEarlierLife);
    }

    @ParameterizedTest
    @EnumSource
    void markOfAnEarlierLifeOfTheIdDoesNotCount(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        for (int life = 1; life <= 2; life++) {
            ClaimResult.Claimed claimed = (ClaimResult.Claimed) storage.claim(Claims.request(key));
            assertThat(claimed.claim().fence()).as("life %d", life).isEqualTo(1);
            run(databases, storage, claimed.claim());
            databases.execute("UPDATE idempotence_record SET expires_at = 1 WHERE id = '" + key.value() + "'");
            databases.execute("UPDATE idempotence_applied SET expires_at = 1 WHERE id = '" + key.value() + "'");
        }
        assertThat(effects(databases, key)).isEqualTo(2);
        assertThat(storage.find(key)).isEmpty();
    }

    @ParameterizedTest
    @EnumSource
    void markOutsideATransactionIsRefused(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        Claim claim = Claims.claim(storage, key);
        try (Connection connection = databases.pool().getConnection()) {
            assertThatThrownBy(() -> storage.markApplied(connection, claim))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("auto-commit");
            JdbcIdempotenceStorage plain = databases.storage().build();
            assertThatThrownBy(() -> plain.markApplied(connection, claim)).hasMessageContaining("inTransaction()");
        }
    }
}
