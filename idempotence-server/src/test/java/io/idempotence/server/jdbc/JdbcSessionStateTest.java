package io.idempotence.server.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A connection comes back exactly as it was borrowed, whatever the storage did with it. */
class JdbcSessionStateTest {
    private static final String TABLE = "borrowing_record";
    private static final String APPLIED = "borrowing_applied";

    private final StorageKey key = Claims.newKey();

    private static JdbcIdempotenceStorage.Builder builder(javax.sql.DataSource dataSource) {
        return JdbcIdempotenceStorage.builder(dataSource)
                .table(TABLE)
                .appliedTable(APPLIED)
                .inTransaction()
                .statementTimeout(Duration.ofSeconds(3));
    }

    /** With settings that nobody has by default. */
    private static Connection unusual(Databases databases, boolean autoCommit) throws SQLException {
        Connection connection = DriverManager.getConnection(databases.url());
        connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
        connection.setNetworkTimeout(Runnable::run, 77_000);
        try (Statement statement = connection.createStatement()) {
            for (String setting : settings(databases.dialect)) {
                statement.execute(setting);
            }
        }
        connection.setAutoCommit(autoCommit);
        return connection;
    }

    private static List<String> settings(Dialect dialect) {
        return switch (dialect) {
            case POSTGRESQL ->
                List.of(
                        "SET statement_timeout = 12345",
                        "SET lock_timeout = 23456",
                        "SET search_path = public, pg_catalog",
                        "SET application_name = 'orders'",
                        "SET TIME ZONE 'Asia/Tokyo'");
            case MYSQL ->
                List.of(
                        "SET SESSION lock_wait_timeout = 123",
                        "SET SESSION innodb_lock_wait_timeout = 12",
                        "SET SESSION time_zone = '+09:00'");
            case H2 -> List.of("SET QUERY_TIMEOUT 7500", "SET LOCK_TIMEOUT 3210", "SET TIME ZONE '9'");
        };
    }

    @ParameterizedTest
    @Execution(ExecutionMode.CONCURRENT)
    @CsvSource({
        "POSTGRESQL, true", "POSTGRESQL, false",
        "MARIADB, true", "MARIADB, false",
        "MYSQL, true", "MYSQL, false",
        "H2, true", "H2, false"
    })
    void everyCallLeavesTheSessionAsItWas(Databases databases, boolean autoCommit) throws Exception {
        builder(databases.pool()).createIfMissing().build().close();
        try (Connection connection = unusual(databases, autoCommit)) {
            OneConnection dataSource = new OneConnection(connection);
            Map<String, String> before = SessionState.of(connection, databases.dialect);
            JdbcIdempotenceStorage storage = builder(dataSource).build();
            assertSame("build", before, connection, databases);

            StorageKey second = Claims.newKey();
            StorageKey third = Claims.newKey();
            Map<String, ThrowingCallable> calls = new LinkedHashMap<>();
            calls.put("claim", () -> Claims.claim(storage, key));
            calls.put("duplicate", () -> storage.claim(Claims.request(key)));
            Claim claim = Claims.claim(storage, second);
            calls.put("renew", () -> storage.renew(claim, Claims.LEASE));
            calls.put("complete", () -> storage.complete(claim, new byte[1], Claims.RETENTION));
            calls.put("complete a lost one", () -> {
                storage.delete(second);
                storage.complete(claim, new byte[1], Claims.RETENTION);
            });
            calls.put("replay", () -> storage.claim(Claims.request(second)));
            Claim unknown = Claims.claim(storage, third);
            calls.put("mark unknown", () -> storage.markUnknown(unknown, Claims.RETENTION));
            calls.put("resolve", () -> storage.resolve(third, 1, Resolution.NOT_APPLIED, Claims.RETENTION));
            calls.put("release", () -> storage.release(Claims.claim(storage, Claims.newKey()), Claims.RETENTION));
            calls.put("find", () -> storage.find(key));
            calls.put("list", () -> storage.list("default").count());
            calls.put("delete", () -> storage.delete(key));
            calls.put(
                    "delete what was read",
                    () -> storage.deleteUnchanged(third, storage.find(third).orElseThrow()));
            calls.put("delete expired", () -> storage.deleteExpired(10));
            calls.put("wait for a lock in vain", () -> waitInVain(databases, storage));
            for (Map.Entry<String, ThrowingCallable> call : calls.entrySet()) {
                assertThatCode(call.getValue()).as(call.getKey()).doesNotThrowAnyException();
                assertSame(call.getKey(), before, connection, databases);
            }
            storage.close();
            assertThat(dataSource.givenBack).isEqualTo(dataSource.lent);
        }
    }

    private static void waitInVain(Databases databases, JdbcIdempotenceStorage storage) throws SQLException {
        StorageKey locked = Claims.newKey();
        Claim claim = Claims.claim(storage, locked);
        try (Connection other = databases.pool().getConnection();
                Statement lock = other.createStatement()) {
            other.setAutoCommit(false);
            lock.execute("SELECT id FROM " + TABLE + " WHERE id = '" + locked.value() + "' FOR UPDATE");
            assertThatThrownBy(() -> storage.complete(claim, new byte[1], Claims.RETENTION))
                    .isInstanceOf(StorageUnavailableException.class);
            other.rollback();
        }
    }

    @ParameterizedTest
    @Execution(ExecutionMode.CONCURRENT)
    @CsvSource({"POSTGRESQL, true", "MARIADB, false", "MYSQL, false", "H2, true"})
    void failedStatementAndCreatedTablesLeaveTheSessionAsItWas(Databases databases, boolean autoCommit)
            throws Exception {
        try (Connection connection = unusual(databases, autoCommit)) {
            OneConnection dataSource = new OneConnection(connection);
            Map<String, String> before = SessionState.of(connection, databases.dialect);
            JdbcIdempotenceStorage storage = JdbcIdempotenceStorage.builder(dataSource)
                    .table("vanishing")
                    .appliedTable("vanishing_applied")
                    .createIfMissing()
                    .build();
            assertSame("create", before, connection, databases);
            databases.execute("DROP TABLE vanishing");

            assertThatThrownBy(() -> storage.claim(Claims.request(key)))
                    .isInstanceOf(StorageUnavailableException.class);
            assertSame("claim", before, connection, databases);
        }
    }

    @ParameterizedTest
    @Execution(ExecutionMode.CONCURRENT)
    @EnumSource
    void markAppliedLeavesTheBusinessTransactionItsSettings(Databases databases) throws Exception {
        JdbcIdempotenceStorage storage =
                builder(databases.pool()).createIfMissing().build();
        Claim claim = Claims.claim(storage, key);
        try (Connection business = DriverManager.getConnection(databases.url())) {
            try (Statement statement = business.createStatement()) {
                for (String setting : settings(databases.dialect)) {
                    statement.execute(setting);
                }
            }
            business.setAutoCommit(false);
            Map<String, String> before = SessionState.of(business, databases.dialect);
            storage.markApplied(business, claim);
            business.commit();

            assertSame("mark applied", before, business, databases);
            assertThatThrownBy(() -> storage.markApplied(
                            business, new Claim(key, claim.fingerprint(), claim.owner(), claim.fence() + 1)))
                    .isInstanceOf(ExecutionOvertakenException.class);
            business.rollback();
            assertSame("refused mark", before, business, databases);
        }
    }

    @ParameterizedTest
    @Execution(ExecutionMode.CONCURRENT)
    @ValueSource(classes = {SQLException.class, IllegalStateException.class, StackOverflowError.class})
    void connectionThatCannotBeRestoredIsNotLentAgain(Class<? extends Throwable> failure) throws Exception {
        builder(Databases.POSTGRESQL.pool()).createIfMissing().build().close();
        try (Connection connection = DriverManager.getConnection(Databases.POSTGRESQL.url())) {
            connection.setAutoCommit(false);
            SpyDataSource spy = new SpyDataSource(new OneConnection(connection));
            JdbcIdempotenceStorage storage = builder(spy).build();
            spy.otherCalls.clear();
            spy.failing = "setAutoCommit";
            spy.failsWith = failure.getConstructor().newInstance();

            Throwable thrown = catchThrowable(() -> Claims.claim(storage, key));

            assertThat(connection.isClosed()).isTrue();
            assertThat(thrown).isEqualTo(spy.failsWith instanceof Error ? spy.failsWith : null);
        }
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    void queryTimeoutOfTheStorageDoesNotCancelTheApplicationsOwnQueriesOnH2() throws Exception {
        try (Connection connection = DriverManager.getConnection(Databases.H2.url())) {
            JdbcIdempotenceStorage storage = JdbcIdempotenceStorage.builder(new OneConnection(connection))
                    .createIfMissing()
                    .statementTimeout(Duration.ofSeconds(3))
                    .build();
            Claims.claim(storage, key);
            try (Statement statement = connection.createStatement()) {
                assertThat(statement.getQueryTimeout()).isZero();
            }
        }
    }

    private static void assertSame(String call, Map<String, String> before, Connection connection, Databases databases)
            throws SQLException {
        assertThat(SessionState.of(connection, databases.dialect)).as(call).isEqualTo(before);
    }
}
