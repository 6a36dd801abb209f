package io.idempotence.server.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assertions.tuple;

import io.idempotence.FailureRule;
import io.idempotence.IdempotenceId;
import io.idempotence.server.ExecutionRefusedException;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.ResultCodec;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimRequest;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.RecordState;
import io.idempotence.server.storage.Resolution;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import io.idempotence.server.storage.WriteResult;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.awaitility.Awaitility;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The effect of an ID is committed once, with its mark, or not at all. */
class JdbcInTransactionTest {
    private final StorageKey key = Claims.newKey();

    private static void createTableOfEffects(Databases databases) {
        databases.execute("CREATE TABLE IF NOT EXISTS effect (id VARCHAR(128) NOT NULL)");
    }

    private static JdbcIdempotenceStorage storage(Databases databases) {
        createTableOfEffects(databases);
        return JdbcIdempotenceStorage.builder(databases.pool())
                .createIfMissing()
                .inTransaction()
                .build();
    }

    private static Connection begin(Databases databases) throws SQLException {
        Connection connection = databases.pool().getConnection();
        connection.setAutoCommit(false);
        return connection;
    }

    private static void takeEffect(Connection connection, StorageKey key) throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement("INSERT INTO effect VALUES (?)")) {
            insert.setString(1, key.value());
            insert.executeUpdate();
        }
    }

    private void run(Databases databases, JdbcIdempotenceStorage storage, Claim claim) throws SQLException {
        try (Connection business = begin(databases)) {
            try {
                takeEffect(business, claim.key());
                storage.markApplied(business, claim.key(), claim.fence());
                business.commit();
            } finally {
                business.rollback();
            }
        }
    }

    private long effects(Databases databases) {
        return databases.number("SELECT COUNT(*) FROM effect WHERE id = '" + key.value() + "'");
    }

    private static void assertAppliedWithoutResult(ClaimResult result) {
        assertThat(result)
                .isInstanceOfSatisfying(
                        ClaimResult.Completed.class,
                        completed -> assertThat(completed.result()).isEqualTo(ClaimResult.noResult()));
    }

    @ParameterizedTest
    @EnumSource
    void executionThatWasInterruptedBeforeItsCommitIsTakenOver(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        Claim claim = Claims.claim(storage, key);
        try (Connection business = begin(databases)) {
            storage.markApplied(business, claim.key(), claim.fence());
            business.rollback();
        }
        assertThat(storage.claim(Claims.request(key))).isInstanceOf(ClaimResult.InProgress.class);
        assertThat(storage.renew(claim, Claims.SHORT)).isEqualTo(new WriteResult.Done());
        databases.letPass(Claims.SHORT);

        assertThat(storage.find(key).orElseThrow().state()).isEqualTo(RecordState.ABANDONED);
        ClaimResult.Claimed heir = (ClaimResult.Claimed) storage.claim(Claims.request(key));
        assertThat(heir.takenOver()).isTrue();
        assertThat(heir.claim().fence()).isEqualTo(2);
        run(databases, storage, heir.claim());
        assertThat(effects(databases)).isEqualTo(1);
    }

    @ParameterizedTest
    @EnumSource
    void executionThatWasInterruptedAfterItsCommitNeverRunsAgain(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        Claim claim = Claims.claim(storage, key, Claims.SHORT);
        run(databases, storage, claim);
        databases.letPass(Claims.SHORT);

        assertThat(storage.find(key).orElseThrow().state()).isEqualTo(RecordState.COMPLETED);
        assertThat(storage.resolve(key, 1, Resolution.NOT_APPLIED, Claims.RETENTION))
                .isFalse();
        assertAppliedWithoutResult(storage.claim(Claims.request(key)));
        assertAppliedWithoutResult(storage.claim(Claims.request(key)));
        assertThat(storage.find(key).orElseThrow().state()).isEqualTo(RecordState.COMPLETED);
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
                .isInstanceOf(ClaimResult.Mismatch.class);
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
    void appliedExecutionNeverRunsAgainWhateverItsRecordSays(Databases databases) throws Exception {
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
        assertThat(storage.find(third).orElseThrow().state()).isEqualTo(RecordState.COMPLETED);
        assertAppliedWithoutResult(storage.claim(Claims.request(third)));
        assertAppliedWithoutResult(storage.claim(Claims.request(third)));

        assertThat(storage.delete(third)).isTrue();
        assertThat(storage.find(third)).isEmpty();
        assertThat(Claims.claim(storage, third).fence()).isEqualTo(1);
    }

    @ParameterizedTest
    @EnumSource
    void openBusinessTransactionHoldsUpNobody(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        Claim claim = Claims.claim(storage, key, Claims.SHORT);
        try (Connection business = begin(databases)) {
            takeEffect(business, key);
            storage.markApplied(business, key, claim.fence());

            // Whatever waited for the open transaction would end in the statement timeout.
            assertThat(storage.renew(claim, Claims.LEASE)).isEqualTo(new WriteResult.Done());
            assertThat(storage.claim(Claims.request(key))).isInstanceOf(ClaimResult.InProgress.class);
            assertThat(storage.find(key)).isPresent();
            assertThat(storage.renew(claim, Duration.ofMillis(1))).isEqualTo(new WriteResult.Done());
            databases.letPass(Duration.ofMillis(2));
            assertThat(storage.claim(Claims.request(key))).isInstanceOf(ClaimResult.Claimed.class);
            business.rollback();
        }
    }

    @ParameterizedTest
    @EnumSource
    void lateCommitOfTheOldOwnerWinsAndItsHeirRollsBack(Databases databases) throws Exception {
        race(databases, true);
    }

    @ParameterizedTest
    @EnumSource
    void lateRollbackOfTheOldOwnerLetsItsHeirTakeEffect(Databases databases) throws Exception {
        race(databases, false);
    }

    private void race(Databases databases, boolean commit) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        Claim late = Claims.claim(storage, key, Claims.SHORT);
        try (Connection business = begin(databases)) {
            takeEffect(business, key);
            storage.markApplied(business, key, late.fence());
            databases.letPass(Claims.SHORT);
            Claim heir = Claims.claim(storage, key);

            CompletableFuture<Throwable> other =
                    CompletableFuture.supplyAsync(() -> catchThrowable(() -> run(databases, storage, heir)));
            Awaitility.await().pollDelay(Duration.ofMillis(100)).until(() -> !other.isDone());
            if (commit) {
                business.commit();
                assertThat(other.get()).isInstanceOf(ExecutionOvertakenException.class);
                assertThat(storage.release(heir, Claims.RETENTION)).isEqualTo(new WriteResult.Done());
                assertAppliedWithoutResult(storage.claim(Claims.request(key)));
            } else {
                business.rollback();
                assertThat(other.get()).isNull();
            }
        }
        assertThat(storage.complete(late, new byte[] {2}, Claims.RETENTION)).isInstanceOf(WriteResult.Fenced.class);
        assertThat(effects(databases)).isEqualTo(1);
    }

    @ParameterizedTest
    @EnumSource
    void ownerThatLostItsClaimCannotMark(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        Claim late = Claims.claim(storage, key, Claims.SHORT);
        databases.letPass(Claims.SHORT);
        Claim heir = Claims.claim(storage, key);

        assertThatThrownBy(() -> run(databases, storage, late)).isInstanceOf(ExecutionOvertakenException.class);
        run(databases, storage, heir);
        assertThat(effects(databases)).isEqualTo(1);
    }

    @ParameterizedTest
    @EnumSource
    void ofManyOwnersThatOvertakeEachOtherOneTakesEffect(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        int threads = 6;
        CyclicBarrier start = new CyclicBarrier(threads);
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try {
            List<Future<?>> all = new ArrayList<>();
            for (int t = 0; t < threads; t++) {
                all.add(pool.submit(() -> {
                    start.await();
                    // A lease of 1 ms is over before anything is committed: each owner is overtaken by the next one.
                    while (!Thread.currentThread().isInterrupted()) {
                        ClaimResult result = storage.claim(Claims.request(key, Duration.ofMillis(1)));
                        if (result instanceof ClaimResult.Completed) {
                            return null;
                        }
                        if (result instanceof ClaimResult.Claimed claimed) {
                            try {
                                run(databases, storage, claimed.claim());
                            } catch (ExecutionOvertakenException | StorageUnavailableException e) {
                                storage.release(claimed.claim(), Claims.RETENTION);
                            }
                        }
                    }
                    return null;
                }));
            }
            for (Future<?> future : all) {
                future.get(1, TimeUnit.MINUTES);
            }
        } finally {
            pool.shutdownNow();
        }
        assertThat(effects(databases)).isEqualTo(1);
    }

    /** Two payments book on the same two accounts, in opposite orders. */
    @ParameterizedTest
    @EnumSource
    void theVictimOfADeadlockHasDoneNothingAndIsDoneOnceByTheNextAttempt(Databases databases) throws Exception {
        databases.execute("CREATE TABLE IF NOT EXISTS account (id VARCHAR(128) PRIMARY KEY, booked INT NOT NULL)");
        List<String> accounts = List.of(key.value() + "/0", key.value() + "/1");
        accounts.forEach(account -> databases.execute("INSERT INTO account VALUES ('" + account + "', 0)"));
        JdbcIdempotenceStorage storage = storage(databases);
        CyclicBarrier both = new CyclicBarrier(2);
        AtomicInteger runs = new AtomicInteger();
        try (Idempotence idempotence = Idempotence.over(storage)) {
            List<Callable<String>> payments = Stream.of(0, 1)
                    .map(number -> (Callable<String>) () -> idempotence.execute(
                            IdempotenceId.of(key.value() + number), ResultCodec.text(), execution -> {
                                boolean meets = runs.incrementAndGet() <= 2;
                                try (Connection business = begin(databases)) {
                                    storage.markApplied(business, execution);
                                    book(business, accounts.get(number));
                                    if (meets) {
                                        both.await();
                                    }
                                    book(business, accounts.get(1 - number));
                                    business.commit();
                                }
                                return "paid";
                            }))
                    .toList();
            CompletableFuture<Throwable> other =
                    CompletableFuture.supplyAsync(() -> catchThrowable(payments.get(0)::call));
            Throwable mine = catchThrowable(payments.get(1)::call);

            assertThat(Stream.of(mine, other.get()).filter(Objects::nonNull))
                    .singleElement()
                    .isInstanceOfSatisfying(
                            SQLException.class,
                            victim -> assertThat(victim.getSQLState()).isIn("40001", "40P01"));
            assertThat(booked(databases, accounts)).containsExactly(1L, 1L);

            for (Callable<String> payment : payments) {
                assertThat(payment.call()).isEqualTo("paid");
                assertThat(payment.call()).isEqualTo("paid");
            }
        }
        assertThat(booked(databases, accounts)).containsExactly(2L, 2L);
        assertThat(runs).hasValue(3);
    }

    private static void book(Connection business, String account) throws SQLException {
        try (PreparedStatement update =
                business.prepareStatement("UPDATE account SET booked = booked + 1 WHERE id = ?")) {
            update.setString(1, account);
            update.executeUpdate();
        }
    }

    private static List<Long> booked(Databases databases, List<String> accounts) {
        return accounts.stream()
                .map(account -> databases.number("SELECT booked FROM account WHERE id = '" + account + "'"))
                .toList();
    }

    @ParameterizedTest
    @EnumSource
    void expiredMarksAreDeletedInBatchesAndLiveOnesAreKept(Databases databases) throws Exception {
        createTableOfEffects(databases);
        JdbcIdempotenceStorage storage = JdbcIdempotenceStorage.builder(databases.pool())
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
                        tuple(running, RecordState.IN_PROGRESS),
                        tuple(applied, RecordState.COMPLETED),
                        tuple(unknownButApplied, RecordState.COMPLETED),
                        tuple(brokenOff, RecordState.ABANDONED),
                        tuple(ofAnEarlierLife, RecordState.ABANDONED));
        assertThat(IdempotenceAdmin.of(storage, namespace).listUncertain(Duration.ZERO))
                .extracting(IdempotenceRecord::key)
                .containsExactlyInAnyOrder(brokenOff, ofAnEarlierLife);
    }

    @ParameterizedTest
    @EnumSource
    void markOfAnEarlierLifeOfTheIdDoesNotCount(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        for (int life = 1; life <= 2; life++) {
            ClaimResult.Claimed claimed = (ClaimResult.Claimed) storage.claim(new ClaimRequest(
                    key, Fingerprint.NONE, new Owner(life, 1), Claims.SHORT, Claims.SHORT.multipliedBy(5), false));
            assertThat(claimed.claim().fence()).isEqualTo(1);
            run(databases, storage, claimed.claim());
            databases.letPass(Claims.SHORT.multipliedBy(5));
        }
        assertThat(effects(databases)).isEqualTo(2);
        assertThat(storage.find(key)).isEmpty();
    }

    @ParameterizedTest
    @EnumSource
    void businessCodeMarksItsExecutionAndAnOvertakenOneIsNotKept(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        IdempotenceId id = new IdempotenceId(UUID.randomUUID().toString());
        AtomicReference<StorageKey> failed = new AtomicReference<>();
        try (Idempotence idempotence = Idempotence.builder(storage)
                .policy(IdempotencePolicy.builder()
                        .failureRule(FailureRule.STORE_EVERYTHING)
                        .build())
                .build()) {
            assertThatThrownBy(() -> idempotence.execute(id, ResultCodec.text(), execution -> {
                        failed.set(execution.key());
                        // Another owner of the same claim was first.
                        try (Connection other = begin(databases)) {
                            storage.markApplied(other, execution.key(), execution.fence());
                            other.commit();
                        }
                        try (Connection business = begin(databases)) {
                            storage.markApplied(business, execution);
                        }
                        return "never";
                    }))
                    .isInstanceOf(ExecutionOvertakenException.class);
            assertThat(storage.find(failed.get()).orElseThrow().state()).isEqualTo(RecordState.COMPLETED);

            IdempotenceId fine = new IdempotenceId(UUID.randomUUID().toString());
            for (int i = 0; i < 2; i++) {
                assertThat(idempotence.execute(fine, ResultCodec.text(), execution -> {
                            try (Connection business = begin(databases)) {
                                storage.markApplied(business, execution);
                                business.commit();
                            }
                            return "paid";
                        }))
                        .isEqualTo("paid");
            }
        }
    }

    /** T21: it would stop an owner who was only paused, and nothing would run instead. */
    @ParameterizedTest
    @EnumSource
    void claimThatIsGivenBackTakesNothingOver(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        IdempotenceId id = new IdempotenceId(UUID.randomUUID().toString());
        Claim paused =
                Claims.claim(storage, IdempotenceAdmin.of(storage, "default").executeKey(id), Claims.SHORT);
        databases.letPass(Claims.SHORT);
        FaultyStorage wire = new FaultyStorage(storage).before((call, which) -> {
            throw new StorageUnavailableException("the storage does not respond", null);
        });
        try (Idempotence idempotence = Idempotence.over(wire)) {
            assertThatThrownBy(() -> idempotence.execute(id, () -> "never"))
                    .isInstanceOf(ExecutionRefusedException.class);
            wire.before((call, which) -> {});
            Awaitility.await().until(() -> wire.count(FaultyStorage.Call.CLAIM) == 3);
        }

        assertThat(storage.find(paused.key()).orElseThrow().state()).isEqualTo(RecordState.ABANDONED);
        run(databases, storage, paused);
        assertThat(storage.complete(paused, new byte[] {1}, Claims.RETENTION)).isEqualTo(new WriteResult.Done());
    }

    /** Whatever became of the first transaction, the second one takes effect, and its result is the response. */
    @ParameterizedTest
    @EnumSource
    void transactionThatIsRetriedKeepsItsResult(Databases databases) throws Exception {
        storage(databases);
        SpyDataSource spy = new SpyDataSource(databases.pool());
        JdbcIdempotenceStorage storage =
                JdbcIdempotenceStorage.builder(spy).inTransaction().build();
        IdempotenceId id = new IdempotenceId(UUID.randomUUID().toString());
        try (Idempotence idempotence = Idempotence.over(storage)) {
            Callable<String> pay = () -> idempotence.execute(id, ResultCodec.text(), execution -> {
                try (Connection business = spy.getConnection()) {
                    business.setAutoCommit(false);
                    spy.failNext(new SQLException("deadlock", "40001"));
                    assertThatThrownBy(() -> storage.markApplied(business, execution))
                            .isInstanceOf(StorageUnavailableException.class);
                    business.rollback();
                    storage.markApplied(business, execution);
                    takeEffect(business, key);
                    business.commit();
                }
                return "paid";
            });
            assertThat(pay.call()).isEqualTo("paid");
            assertThat(pay.call()).isEqualTo("paid");
        }
        assertThat(effects(databases)).isEqualTo(1);
    }

    /** A transaction that began before the claim does not see it. */
    @ParameterizedTest
    @EnumSource
    void executionThatWasRefusedItsMarkKeepsTheResultOfItsNextTransaction(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        IdempotenceId id = new IdempotenceId(UUID.randomUUID().toString());
        try (Idempotence idempotence = Idempotence.over(storage);
                Connection business = begin(databases)) {
            business.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            try (Statement look = business.createStatement()) {
                look.executeQuery("SELECT COUNT(*) FROM idempotence_record").close();
            }
            Callable<String> pay = () -> idempotence.execute(id, ResultCodec.text(), execution -> {
                assertThatThrownBy(() -> storage.markApplied(business, execution))
                        .isInstanceOf(ExecutionOvertakenException.class);
                business.rollback();
                storage.markApplied(business, execution);
                business.commit();
                return "paid";
            });
            assertThat(pay.call()).isEqualTo("paid");
            assertThat(pay.call()).isEqualTo("paid");
        }
    }

    @ParameterizedTest
    @EnumSource
    void markOutsideATransactionIsRefused(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage = storage(databases);
        Claim claim = Claims.claim(storage, key);
        try (Connection connection = databases.pool().getConnection()) {
            assertThatThrownBy(() -> storage.markApplied(connection, key, claim.fence()))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("auto-commit");
            JdbcIdempotenceStorage plain =
                    JdbcIdempotenceStorage.builder(databases.pool()).build();
            assertThatThrownBy(() -> plain.markApplied(connection, key, claim.fence()))
                    .hasMessageContaining("inTransaction()");
        }
    }
}
