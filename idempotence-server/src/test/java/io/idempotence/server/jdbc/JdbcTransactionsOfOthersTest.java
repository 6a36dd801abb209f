package io.idempotence.server.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.zaxxer.hikari.HikariDataSource;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.jdbc.datasource.DelegatingDataSource;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import org.springframework.transaction.support.TransactionTemplate;

/** The storage neither commits nor rolls back a transaction that somebody else began. */
class JdbcTransactionsOfOthersTest {
    private static final String FIX = "give the storage the connection pool itself";

    private final StorageKey key = Claims.newKey();

    /** A hand-written {@code DataSource} that lends the connection of the thread's transaction. */
    private static final class ThreadBound extends DelegatingDataSource {
        @SuppressWarnings("ThreadLocalUsage") // as hand-written ones have it
        private final ThreadLocal<OneConnection> bound = new ThreadLocal<>();

        private ThreadBound(DataSource pool) {
            super(pool);
        }

        @Override
        public Connection getConnection() throws SQLException {
            OneConnection running = bound.get();
            return running == null ? super.getConnection() : running.getConnection();
        }
    }

    private static JdbcIdempotenceStorage.Builder builder(DataSource dataSource) {
        return JdbcIdempotenceStorage.builder(dataSource).createIfMissing();
    }

    private static void pay(Connection connection, String id) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("INSERT INTO business_payment VALUES ('" + id + "')");
        }
    }

    private long payments(Databases databases) {
        return databases.number("SELECT COUNT(*) FROM business_payment WHERE id = '" + key.value() + "'");
    }

    @BeforeEach
    void createTable() {
        for (Databases databases : new Databases[] {Databases.POSTGRESQL, Databases.MARIADB, Databases.H2}) {
            createTable(databases);
        }
    }

    private static void createTable(Databases databases) {
        databases.execute("CREATE TABLE IF NOT EXISTS business_payment (id VARCHAR(200) PRIMARY KEY)");
    }

    @ParameterizedTest
    @CsvSource({
        "POSTGRESQL, true", "POSTGRESQL, false",
        "MARIADB, true", "MARIADB, false",
        "MYSQL, true", "MYSQL, false",
        "H2, true", "H2, false"
    })
    void claimOnTheConnectionOfARunningTransactionIsRefusedAndCommitsNothingOfIt(
            Databases databases, boolean autoCommitOfThePool) throws Exception {
        createTable(databases);
        try (HikariDataSource pool = databases.newPool(config -> config.setAutoCommit(autoCommitOfThePool))) {
            ThreadBound dataSource = new ThreadBound(pool);
            JdbcIdempotenceStorage storage = builder(dataSource).build();
            try (Connection business = pool.getConnection()) {
                business.setAutoCommit(false);
                pay(business, key.value());
                dataSource.bound.set(new OneConnection(business));

                assertThatThrownBy(() -> storage.claim(Claims.request(key)))
                        .isInstanceOf(StorageUnavailableException.class)
                        .hasMessageContaining(FIX);
                assertThatThrownBy(() -> storage.find(key)).hasMessageContaining(FIX);

                assertThat(business.getAutoCommit()).isFalse();
                business.rollback();
                dataSource.bound.remove();
            }
            assertThat(payments(databases)).isZero();
            assertThat(storage.claim(Claims.request(key))).isInstanceOf(ClaimResult.Claimed.class);
        }
    }

    /** Nothing would be committed yet, but the end of the execution would meet a transaction. */
    @Test
    void claimIsRefusedAlsoBeforeTheTransactionsFirstStatement() throws Exception {
        ThreadBound dataSource = new ThreadBound(Databases.POSTGRESQL.pool());
        JdbcIdempotenceStorage storage = builder(dataSource).build();
        try (Connection business = Databases.POSTGRESQL.pool().getConnection()) {
            business.setAutoCommit(false);
            dataSource.bound.set(new OneConnection(business));
            assertThatThrownBy(() -> storage.claim(Claims.request(key))).hasMessageContaining(FIX);
            business.rollback();
        }
    }

    /** The connection of the first call came with auto-commit off, and the pool lends them with auto-commit on. */
    @ParameterizedTest
    @ValueSource(strings = {"POSTGRESQL", "MARIADB", "H2"})
    void lazyStartInsideATransactionDoesNotHideTheTransactionsThatFollow(Databases databases) throws Exception {
        ThreadBound dataSource = new ThreadBound(databases.pool());
        JdbcIdempotenceStorage storage = builder(dataSource).lazyStart().build();
        try (Connection business = databases.pool().getConnection()) {
            business.setAutoCommit(false);
            dataSource.bound.set(new OneConnection(business));
            storage.find(key);
            dataSource.bound.remove();
            storage.find(key);

            dataSource.bound.set(new OneConnection(business));
            assertThatThrownBy(() -> storage.claim(Claims.request(key))).hasMessageContaining(FIX);
            assertThat(business.getAutoCommit()).isFalse();
            business.rollback();
        }
    }

    /** A transaction that only reads is one, too: its snapshot and its locks end with it. */
    @ParameterizedTest
    @ValueSource(strings = {"POSTGRESQL", "MARIADB", "MYSQL"})
    void transactionThatHasOnlyReadIsRecognised(Databases databases) throws Exception {
        createTable(databases);
        try (HikariDataSource pool = databases.newPool(config -> config.setAutoCommit(false))) {
            ThreadBound dataSource = new ThreadBound(pool);
            JdbcIdempotenceStorage storage = builder(dataSource).build();
            try (Connection business = pool.getConnection();
                    Statement statement = business.createStatement()) {
                statement.executeQuery("SELECT COUNT(*) FROM business_payment").close();
                dataSource.bound.set(new OneConnection(business));
                assertThatThrownBy(() -> storage.claim(Claims.request(key))).hasMessageContaining(FIX);
                business.rollback();
            }
        }
    }

    @Test
    void failedTransactionIsRecognised() throws Exception {
        try (HikariDataSource pool = Databases.POSTGRESQL.newPool(config -> config.setAutoCommit(false));
                Connection business = pool.getConnection();
                Statement statement = business.createStatement()) {
            assertThatThrownBy(() -> statement.execute("SELECT 1 / 0")).isInstanceOf(SQLException.class);
            ThreadBound dataSource = new ThreadBound(pool);
            dataSource.bound.set(new OneConnection(business));
            assertThatThrownBy(() -> builder(dataSource).build()).hasMessageContaining(FIX);
        }
    }

    @ParameterizedTest
    @EnumSource
    void poolWithAutoCommitOffWorks(Databases databases) {
        try (HikariDataSource pool = databases.newPool(config -> config.setAutoCommit(false))) {
            JdbcIdempotenceStorage storage = builder(pool).build();
            for (int i = 0; i < 3; i++) {
                StorageKey one = Claims.newKey();
                storage.complete(Claims.claim(storage, one), new byte[1], Claims.RETENTION);
                assertThat(storage.claim(Claims.request(one))).isInstanceOf(ClaimResult.Completed.class);
            }
        }
    }

    // ---- Spring's

    @Test
    void transactionAwareProxyIsRefusedAtTheStartWhereverItIsInTheChain() {
        DataSource aware = new TransactionAwareDataSourceProxy(Databases.H2.pool());
        for (DataSource dataSource : new DataSource[] {
            aware,
            new TransactionAwareDataSourceProxy(Databases.H2.pool()) {},
            new DelegatingDataSource(aware),
            new LazyConnectionDataSourceProxy(new DelegatingDataSource(aware))
        }) {
            assertThatThrownBy(() -> builder(dataSource).build())
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("TransactionAwareDataSourceProxy")
                    .hasMessageContaining(FIX);
        }
    }

    @ParameterizedTest
    @EnumSource
    void lazyConnectionsOfAPoolWork(Databases databases) {
        DataSource lazy = new LazyConnectionDataSourceProxy(databases.pool());
        JdbcIdempotenceStorage storage = builder(lazy).build();
        Claims.claim(storage, key);
        assertThat(storage.claim(Claims.request(key))).isInstanceOf(ClaimResult.InProgress.class);
    }

    /** The pool gives the storage a connection of its own, so that the record survives the rollback. */
    @Test
    void storageOnThePlainPoolWorksInsideATransactionOfSpring() {
        DataSource pool = Databases.POSTGRESQL.pool();
        JdbcIdempotenceStorage storage = builder(pool).build();
        TransactionTemplate transaction = new TransactionTemplate(new DataSourceTransactionManager(pool));
        assertThatCode(() -> transaction.executeWithoutResult(status -> {
                    Claims.claim(storage, key);
                    status.setRollbackOnly();
                }))
                .doesNotThrowAnyException();
        assertThat(storage.find(key)).isPresent();
    }
}
