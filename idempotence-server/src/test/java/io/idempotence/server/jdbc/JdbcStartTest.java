package io.idempotence.server.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import ch.qos.logback.classic.spi.ILoggingEvent;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.idempotence.server.CapturedLog;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.jdbc.datasource.DelegatingDataSource;

/** The checks of an eager and of a lazy start, and the calls before a check has succeeded. */
class JdbcStartTest {
    private final StorageKey key = Claims.newKey();

    /** A {@code DataSource} that refuses connections until the test ends the outage, and counts the tries. */
    private static final class Outage extends DelegatingDataSource {
        private final AtomicInteger tries = new AtomicInteger();
        private volatile boolean over;

        private Outage(DataSource pool) {
            super(pool);
        }

        @Override
        public Connection getConnection() throws SQLException {
            tries.incrementAndGet();
            if (!over) {
                throw new SQLException("connection refused", "08001");
            }
            return super.getConnection();
        }
    }

    private static void assertNothingSent(Runnable call, String reason) {
        assertThatThrownBy(call::run)
                .isInstanceOfSatisfying(
                        StorageUnavailableException.class,
                        e -> assertThat(e.nothingWritten()).isTrue())
                .hasMessageContaining(reason);
    }

    @Test
    void eagerStartFailsWhereTheDatabaseIsOutOfReach() {
        Outage outage = new Outage(Databases.H2.pool());
        assertThatThrownBy(() -> JdbcIdempotenceStorage.builder(outage).build())
                .isInstanceOf(StorageUnavailableException.class);
    }

    @ParameterizedTest
    @EnumSource
    void lazyStartSucceedsAndCallsAreRefusedUntilTheDatabaseIsThere(Databases databases) {
        Outage outage = new Outage(databases.pool());
        try (JdbcIdempotenceStorage storage = JdbcIdempotenceStorage.builder(outage)
                .createIfMissing()
                .lazyStart()
                .build()) {
            assertThat(outage.tries).hasValue(0);
            assertThat(storage).hasToString("JdbcIdempotenceStorage[not connected yet]");
            assertNothingSent(() -> storage.claim(Claims.request(key)), "no connection");
            assertNothingSent(() -> storage.find(key), "no connection");

            outage.over = true;
            await().ignoreExceptionsInstanceOf(StorageUnavailableException.class)
                    .until(() -> storage.claim(Claims.request(key)) instanceof ClaimResult.Claimed);
            assertThat(storage.toString()).contains(databases.dialect.title);
        }
    }

    @Test
    void callsDuringAnOutageBeforeTheFirstContactShareOneTry() {
        Outage outage = new Outage(Databases.H2.pool());
        try (JdbcIdempotenceStorage storage =
                JdbcIdempotenceStorage.builder(outage).lazyStart().build()) {
            List<CompletableFuture<Void>> calls = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                calls.add(CompletableFuture.runAsync(() ->
                        assertNothingSent(() -> storage.claim(Claims.request(Claims.newKey())), "no connection")));
            }
            calls.forEach(CompletableFuture::join);
            assertThat(outage.tries).hasValueLessThan(20);
        }
    }

    @Test
    void missingTableKeepsRefusingCallsOfALazyStartUntilItIsCreated() {
        String table = "late_" + UUID.randomUUID().toString().replace("-", "");
        try (JdbcIdempotenceStorage storage = JdbcIdempotenceStorage.builder(Databases.H2.pool())
                .table(table)
                .lazyStart()
                .build()) {
            assertNothingSent(() -> storage.claim(Claims.request(key)), "h2.sql");

            JdbcIdempotenceStorage.builder(Databases.H2.pool())
                    .table(table)
                    .createIfMissing()
                    .build()
                    .close();
            await().ignoreExceptionsInstanceOf(StorageUnavailableException.class)
                    .until(() -> storage.claim(Claims.request(key)) instanceof ClaimResult.Claimed);
        }
    }

    @Test
    void lazyStartStillRefusesWrongSettings() {
        assertThatThrownBy(() -> JdbcIdempotenceStorage.builder(Databases.H2.pool())
                        .table("one")
                        .appliedTable("one")
                        .lazyStart()
                        .build())
                .isInstanceOf(IllegalArgumentException.class);
    }

    // ---- connections that are not had

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "08004 | 1040 | the server has too many connections; make the pools smaller, or its max_connections larger",
                "53300 | 0    | the server has too many connections; make the pools smaller, or its max_connections larger",
                "08004 | 0    | the server demands a password and got none, or has no TLS and was asked for it (08004); check the parameters of the URL, too, such as sslmode",
                "08004 | 1159 | no connection, or no free connection in the pool in time (08004)",
                "28000 | 1045 | user or password refused (28000)"
            })
    void reportsWhyThereIsNoConnection(String state, int code, String why) {
        DataSource refusing = new DelegatingDataSource(Databases.H2.pool()) {
            @Override
            public Connection getConnection() throws SQLException {
                throw new SQLException("wrapped", new SQLException("s3cret", state, code));
            }
        };
        assertThatThrownBy(() -> JdbcIdempotenceStorage.builder(refusing).build())
                .isInstanceOf(StorageUnavailableException.class)
                .hasMessageEndingWith(why)
                .hasMessageNotContaining("s3cret");
    }

    @Test
    void callThatGetsNoConnectionHasCertainlyWrittenNothing() throws Exception {
        try (HikariDataSource one = Databases.H2.newPool(config -> {
                    config.setMaximumPoolSize(1);
                    config.setConnectionTimeout(250);
                });
                JdbcIdempotenceStorage storage =
                        JdbcIdempotenceStorage.builder(one).createIfMissing().build()) {
            try (Connection held = one.getConnection()) {
                assertThat(held.isValid(1)).isTrue();
                assertNothingSent(() -> storage.claim(Claims.request(key)), "no free connection");
            }
            assertThat(storage.claim(Claims.request(key))).isInstanceOf(ClaimResult.Claimed.class);
        }
    }

    @Test
    void statementThatFailedMayHaveBeenWritten() {
        SpyDataSource spy = new SpyDataSource(Databases.H2.pool());
        JdbcIdempotenceStorage storage =
                JdbcIdempotenceStorage.builder(spy).createIfMissing().build();
        spy.failNext(new SQLException("connection lost", "08006"));
        assertThatThrownBy(() -> storage.claim(Claims.request(key)))
                .isInstanceOfSatisfying(
                        StorageUnavailableException.class,
                        e -> assertThat(e.nothingWritten()).isFalse());
    }

    @Test
    void poolThatHoldsItsCallersForLongIsWarnedOfAtStart() {
        try (CapturedLog log = CapturedLog.of(JdbcIdempotenceStorage.class)) {
            HikariConfig defaults = new HikariConfig();
            defaults.setJdbcUrl(Databases.H2.url());
            try (HikariDataSource pool = new HikariDataSource(defaults)) {
                JdbcIdempotenceStorage.builder(new DelegatingDataSource(pool))
                        .createIfMissing()
                        .build()
                        .close();
            }
            assertThat(log.warnings())
                    .extracting(ILoggingEvent::getFormattedMessage)
                    .singleElement()
                    .asString()
                    .contains("connectionTimeout is 30000 ms", "set it to 5000 ms or less");
        }
        try (CapturedLog log = CapturedLog.of(JdbcIdempotenceStorage.class);
                HikariDataSource pool = Databases.H2.newPool(config -> config.setConnectionTimeout(2_000))) {
            JdbcIdempotenceStorage.builder(pool).createIfMissing().build().close();
            assertThat(log.warnings()).isEmpty();
        }
    }

    /** A stand-in for Druid's pool and, with an int, Tomcat's. Their jars are no dependencies of the tests. */
    public static final class MaxWait extends DelegatingDataSource {
        private final long millis;

        private MaxWait(long millis) {
            super(Databases.H2.pool());
            this.millis = millis;
        }

        public long getMaxWait() {
            return millis;
        }
    }

    /** A stand-in for DBCP2's pool. */
    public static final class MaxWaitMillis extends DelegatingDataSource {
        private final int millis;

        private MaxWaitMillis(int millis) {
            super(Databases.H2.pool());
            this.millis = millis;
        }

        public int getMaxWaitMillis() {
            return millis;
        }
    }

    private static List<String> warnings(DataSource pool) {
        try (CapturedLog log = CapturedLog.of(JdbcIdempotenceStorage.class)) {
            JdbcIdempotenceStorage.builder(pool).createIfMissing().build().close();
            return log.warnings().stream()
                    .map(ILoggingEvent::getFormattedMessage)
                    .toList();
        }
    }

    @Test
    void poolsOfOtherMakersAreWarnedOfToo() {
        assertThat(warnings(new MaxWait(-1))).singleElement().asString().contains("maxWait sets no limit");
        assertThat(warnings(new MaxWait(0))).singleElement().asString().contains("maxWait sets no limit");
        assertThat(warnings(new MaxWait(6_000))).singleElement().asString().contains("maxWait is 6000 ms");
        assertThat(warnings(new MaxWaitMillis(-1))).singleElement().asString().contains("maxWaitMillis sets no limit");
        assertThat(warnings(new MaxWaitMillis(0))).isEmpty();
        assertThat(warnings(new MaxWait(2_000))).isEmpty();
        assertThat(warnings(new MaxWaitMillis(5_000))).isEmpty();
    }
}
