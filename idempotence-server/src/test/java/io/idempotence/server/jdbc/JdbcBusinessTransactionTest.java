package io.idempotence.server.jdbc;

import static io.idempotence.server.jdbc.Effects.begin;
import static io.idempotence.server.jdbc.Effects.effects;
import static io.idempotence.server.jdbc.Effects.run;
import static io.idempotence.server.jdbc.Effects.storage;
import static io.idempotence.server.jdbc.Effects.takeEffect;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.idempotence.FailureRule;
import io.idempotence.IdempotenceId;
import io.idempotence.server.ExecutionRefusedException;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.ResultCodec;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import io.idempotence.server.storage.WriteResult;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.awaitility.Awaitility;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Business code that marks its execution in its own transactions, which may fail and be retried. */
class JdbcBusinessTransactionTest {
    private final StorageKey key = Claims.newKey();

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
                            storage.markApplied(other, execution.claim());
                            other.commit();
                        }
                        try (Connection business = begin(databases)) {
                            storage.markApplied(business, execution);
                        }
                        return "never";
                    }))
                    .isInstanceOf(ExecutionOvertakenException.class);
            assertThat(storage.find(failed.get()).orElseThrow().state()).isEqualTo(State.COMPLETED);

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

        assertThat(storage.find(paused.key()).orElseThrow().state()).isEqualTo(State.ABANDONED);
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
        assertThat(effects(databases, key)).isEqualTo(1);
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
}
