package io.idempotence.server.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.zaxxer.hikari.HikariDataSource;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Collections;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests of what callers see when the database fails. */
class JdbcFaultsTest {
    /** A statement timeout that is soon over, and longer than a busy machine pauses. */
    private static final Duration SOON = Duration.ofSeconds(3);
    /** More than a busy machine needs, less than forever. */
    private static final Duration BOUND = Duration.ofSeconds(20);

    private final StorageKey key = Claims.newKey();

    private static JdbcIdempotenceStorage.Builder builder(Databases databases) {
        return JdbcIdempotenceStorage.builder(databases.pool())
                .createIfMissing()
                .statementTimeout(SOON);
    }

    @Test
    void emptyPoolIsUnavailableInABoundedTimeAndAnInterruptIsKept() throws Exception {
        builder(Databases.POSTGRESQL).build();
        try (HikariDataSource one = Databases.POSTGRESQL.newPool(config -> {
            config.setMaximumPoolSize(1);
            config.setConnectionTimeout(300);
        })) {
            JdbcIdempotenceStorage storage = Databases.storage(one).build();
            try (Connection held = one.getConnection()) {
                assertThat(held.isValid(1)).isTrue();
                assertUnavailable(() -> storage.claim(Claims.request(key)), "no free connection");

                AtomicBoolean flag = new AtomicBoolean();
                Thread interrupted = new Thread(() -> {
                    Thread.currentThread().interrupt();
                    assertThatThrownBy(() -> storage.find(key)).hasMessageContaining("interrupted");
                    flag.set(Thread.currentThread().isInterrupted());
                });
                interrupted.start();
                interrupted.join();
                assertThat(flag).isTrue();
            }
            assertThat(storage.claim(Claims.request(key))).isInstanceOf(ClaimResult.Claimed.class);
        }
    }

    /** A pool of one connection. Hikari would check one that was idle for half a second, and replace it if its server is silent. */
    private static HikariDataSource poolThatKeepsItsConnection() {
        String unchecked = "com.zaxxer.hikari.aliveBypassWindowMs";
        System.setProperty(unchecked, "600000");
        try {
            return Databases.POSTGRESQL.newPool(config -> config.setMaximumPoolSize(1));
        } finally {
            System.clearProperty(unchecked);
        }
    }

    @Test
    void silentServerIsUnavailableAfterTheNetworkTimeout() throws Exception {
        builder(Databases.POSTGRESQL).build();
        try (HikariDataSource one = poolThatKeepsItsConnection()) {
            JdbcIdempotenceStorage storage =
                    JdbcIdempotenceStorage.builder(one).statementTimeout(SOON).build();
            ClaimRequest request = Claims.request(key);
            String backend;
            try (Connection connection = one.getConnection();
                    Statement statement = connection.createStatement();
                    ResultSet rows = statement.executeQuery("SELECT pg_backend_pid()")) {
                rows.next();
                backend = rows.getString(1);
            }
            signal("STOP", backend);
            try {
                assertUnavailable(() -> storage.claim(request), "");
            } finally {
                signal("CONT", backend);
            }
            // The claim may have been stored although its reply was lost: the same owner may run (T2).
            assertThat(Databases.storage(one).build().claim(request)).isInstanceOf(ClaimResult.Claimed.class);
        }
    }

    @Test
    void connectionThatCannotGetItsTimeoutBackGetsItsCommitModeBack() {
        builder(Databases.H2).build();
        try (HikariDataSource manual = Databases.H2.newPool(config -> config.setAutoCommit(false))) {
            SpyDataSource spy = new SpyDataSource(manual);
            JdbcIdempotenceStorage storage = Databases.storage(spy).build();
            spy.otherCalls.clear();
            spy.failing = "setNetworkTimeout";

            Claims.claim(storage, key);

            assertThat(spy.otherCalls)
                    .containsSubsequence("setNetworkTimeout", "setNetworkTimeout")
                    .filteredOn(call -> call.equals("setAutoCommit"))
                    .hasSize(2);
        }
    }

    private static void signal(String signal, String pid) throws Exception {
        assertThat(new ProcessBuilder("kill", "-" + signal, pid).start().waitFor())
                .isZero();
    }

    @ParameterizedTest
    @EnumSource
    void deadlockIsRetriedAndReportedIfItStays(Databases databases) {
        SpyDataSource spy = new SpyDataSource(databases.pool());
        JdbcIdempotenceStorage storage =
                Databases.storage(spy).createIfMissing().build();
        SQLException deadlock = new SQLException("key=" + key, "40001", 1213);
        spy.failNext(deadlock, deadlock);
        assertThat(storage.claim(Claims.request(key))).isInstanceOf(ClaimResult.Claimed.class);

        spy.failNext(Collections.nCopies(Database.TRIES, deadlock).toArray(SQLException[]::new));
        assertUnavailable(() -> storage.claim(Claims.request(key)), "deadlock");
        spy.failNext(new SQLException("key=" + key, "XX000"));
        assertUnavailable(() -> storage.find(key), "SQLSTATE XX000");
    }

    @ParameterizedTest
    @EnumSource
    void connectionsGoBackAsTheyCame(Databases databases) throws Exception {
        builder(databases).build();
        try (HikariDataSource one = databases.newPool(config -> {
            config.setMaximumPoolSize(1);
            config.setAutoCommit(false);
        })) {
            // The pool resets what it lends; the driver's own connection shows what was left behind.
            try (Connection lent = one.getConnection()) {
                Connection raw = lent.unwrap(Connection.class);
                assertThat(raw.getAutoCommit()).isFalse();
                lent.rollback();
            }
            SpyDataSource spy = new SpyDataSource(one);
            JdbcIdempotenceStorage storage = Databases.storage(spy).build();
            spy.otherCalls.clear();
            Claim claim = Claims.claim(storage, key);
            storage.complete(claim, new byte[1], Claims.RETENTION);

            assertThat(spy.otherCalls).doesNotContain("commit", "setTransactionIsolation");
            assertThat(spy.otherCalls)
                    .filteredOn(call -> call.equals("setAutoCommit"))
                    .hasSize(4);
            assertThat(spy.otherCalls.stream()
                            .filter(call -> call.equals("setNetworkTimeout"))
                            .count())
                    .isEven();
            storage.close();
            assertThat(one.isClosed()).isFalse();
        }
    }

    @Test
    void deadDatabaseIsUnavailable() {
        HikariDataSource pool = Databases.H2.newPool(config -> {});
        JdbcIdempotenceStorage storage =
                JdbcIdempotenceStorage.builder(pool).createIfMissing().build();
        pool.close();

        assertUnavailable(() -> storage.claim(Claims.request(key)), "the database could not claim");
    }

    @ParameterizedTest
    @EnumSource
    void corruptRecordIsNeverRunAndCanBeDeleted(Databases databases) {
        JdbcIdempotenceStorage storage = databases.storage().createIfMissing().build();
        for (String damage : new String[] {"state = 'X'", "format = 2"}) {
            StorageKey damaged = Claims.newKey();
            Claim claim = Claims.claim(storage, damaged);
            IdempotenceRecord seen = storage.find(damaged).orElseThrow();
            databases.execute("UPDATE idempotence_record SET " + damage + " WHERE id = '" + damaged.value() + "'");

            assertThatThrownBy(() -> storage.claim(Claims.request(damaged))).isInstanceOf(CorruptRecordException.class);
            assertThatThrownBy(() -> storage.complete(claim, new byte[1], Claims.RETENTION))
                    .isInstanceOf(CorruptRecordException.class);
            assertThatThrownBy(() -> storage.find(damaged)).isInstanceOf(CorruptRecordException.class);
            assertThatThrownBy(() -> storage.deleteUnchanged(damaged, seen)).isInstanceOf(CorruptRecordException.class);
            assertThat(storage.deleteUnchanged(damaged, null)).isTrue();
            assertThat(Claims.claim(storage, damaged).fence()).isEqualTo(1);
        }
    }

    private void assertUnavailable(Runnable call, String reason) {
        long start = System.nanoTime();
        assertThatThrownBy(call::run)
                .isInstanceOf(StorageUnavailableException.class)
                .hasMessageContaining(reason)
                .hasMessageNotContaining(key.value())
                .hasCauseInstanceOf(SQLException.class);
        assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(BOUND);
    }
}
