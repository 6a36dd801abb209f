package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.Idempotent;
import io.idempotence.server.ExecutionRefusedException;
import jakarta.persistence.EntityManager;
import jakarta.persistence.EntityManagerFactory;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLIntegrityConstraintViolationException;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Primary;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.jdbc.datasource.DelegatingDataSource;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.orm.jpa.EntityManagerFactoryUtils;
import org.springframework.orm.jpa.JpaTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionStatus;
import org.springframework.transaction.TransactionSystemException;
import org.springframework.transaction.UnexpectedRollbackException;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/**
 * Commits that fail. If the reply is lost, the connections of the pool then have nothing to roll back and say so without an error. If the
 * database refuses the commit, it has rolled back.
 */
@Timeout(180)
class LostCommitsTest {
    private static TestServer server;

    private final String id = UUID.randomUUID().toString();

    @BeforeAll
    static void start() {
        server = TestServer.start(Application.class);
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    /** As Druid's. A commit that loses its reply takes effect. */
    static final class Losing extends DelegatingDataSource {
        Losing(DataSource pool) {
            super(pool);
        }

        @Override
        public Connection getConnection() throws SQLException {
            Connection connection = super.getConnection();
            boolean[] isLost = new boolean[1];
            return (Connection) Proxy.newProxyInstance(
                    Losing.class.getClassLoader(), new Class<?>[] {Connection.class}, (proxy, method, arguments) -> {
                        boolean isCommit = method.getName().equals("commit");
                        if (method.getName().equals("rollback") && isLost[0]) {
                            return null;
                        }
                        if (isCommit && Operations.CONFLICTS.get()) {
                            connection.rollback();
                            throw new SQLException("serialization failure", "40001");
                        }
                        try {
                            return method.invoke(connection, arguments);
                        } catch (InvocationTargetException e) {
                            throw e.getCause();
                        } finally {
                            if (isCommit && Operations.LOSES.get()) {
                                isLost[0] = true;
                                throw new SQLException("the reply was lost", "08007");
                            }
                        }
                    });
        }
    }

    @Import({Handlers.class, Operations.class, JpaTransactionsTest.Entities.class})
    static class Application {
        @Bean
        DataSource dataSource() {
            DataSource pool = JpaTransactionsTest.ownDatabase();
            new JdbcTemplate(pool).execute("create table effect (id varchar(100) not null)");
            return new Losing(pool);
        }

        @Bean
        @Primary
        PlatformTransactionManager jdbc(DataSource dataSource) {
            return new JdbcTransactionManager(dataSource);
        }

        @Bean
        PlatformTransactionManager plain(DataSource dataSource) {
            return new DataSourceTransactionManager(dataSource);
        }

        @Bean
        PlatformTransactionManager jpa(EntityManagerFactory factory) {
            return new JpaTransactionManager(factory);
        }
    }

    static class Operations {
        static final ThreadLocal<Boolean> LOSES = ThreadLocal.withInitial(() -> false);
        static final ThreadLocal<Boolean> CONFLICTS = ThreadLocal.withInitial(() -> false);

        private final JdbcTemplate jdbc;
        private final Map<String, PlatformTransactionManager> managers;

        Operations(DataSource dataSource, Map<String, PlatformTransactionManager> managers) {
            this.jdbc = new JdbcTemplate(dataSource);
            this.managers = managers;
        }

        TransactionTemplate transaction(String manager) {
            return new TransactionTemplate(managers.get(manager));
        }

        void insert(String id) {
            jdbc.update("insert into effect values (?)", id);
        }

        int effects(String id) {
            return jdbc.queryForObject("select count(*) from effect where id = ?", Integer.class, id);
        }

        @Idempotent(id = "#id")
        public void once(String id) {
            insert(id);
        }
    }

    @RestController
    @Idempotent
    static class Handlers {
        private final Operations operations;

        Handlers(Operations operations) {
            this.operations = operations;
        }

        private String commitInVain(ThreadLocal<Boolean> how, String manager, String id) {
            how.set(true);
            try {
                operations.transaction(manager).executeWithoutResult(status -> operations.insert(id));
                return "never";
            } finally {
                how.remove();
            }
        }

        @PostMapping("/{manager}/lost/{id}")
        String lost(@PathVariable("manager") String manager, @PathVariable("id") String id) {
            return commitInVain(Operations.LOSES, manager, id);
        }

        @PostMapping("/{manager}/conflict/{id}")
        String conflict(@PathVariable("manager") String manager, @PathVariable("id") String id) {
            return commitInVain(Operations.CONFLICTS, manager, id);
        }

        @PostMapping("/{manager}/refused/{id}")
        String refused(@PathVariable("manager") String manager, @PathVariable("id") String id) {
            operations.transaction(manager).executeWithoutResult(status -> {
                operations.insert(id);
                refuseCommit();
            });
            return "never";
        }
    }

    /** Registers a callback that keeps the commit from being sent. */
    private static void refuseCommit() {
        TransactionSynchronizationManager.registerSynchronization(new TransactionSynchronization() {
            @Override
            public void beforeCommit(boolean readOnly) {
                throw new IllegalStateException("before the commit");
            }
        });
    }

    /** Has Hibernate find a violated key, in a callback before the commit. */
    private static void flushWhatIsRefused(EntityManagerFactory factory) {
        TransactionSynchronizationManager.registerSynchronization(new TransactionSynchronization() {
            @Override
            public void beforeCommit(boolean readOnly) {
                EntityManager entities = EntityManagerFactoryUtils.getTransactionalEntityManager(factory);
                for (int i = 0; i < 2; i++) {
                    JpaTransactionsTest.Booking booking = new JpaTransactionsTest.Booking();
                    booking.what = "twice";
                    entities.persist(booking);
                }
                entities.flush();
            }
        });
    }

    /** Calls the bean method in a transaction whose commit fails. */
    private static void commitInVain(ThreadLocal<Boolean> how, Operations operations, String manager, String id) {
        TransactionTemplate callers = operations.transaction(manager);
        how.set(true);
        try {
            assertThatThrownBy(() -> callers.executeWithoutResult(status -> operations.once(id)))
                    .isInstanceOfAny(DataAccessException.class, TransactionSystemException.class);
        } finally {
            how.remove();
        }
    }

    private Operations operations() {
        return server.bean(Operations.class);
    }

    @ParameterizedTest
    @ValueSource(strings = {"jdbc", "jpa"})
    @DisplayName("P6: a commit whose reply was lost does not release the ID, although a rollback succeeds")
    void aHandlerWhoseCommitIsLostIsUnknown(String manager) {
        server.assertUnknownAfterAFailure("/" + manager + "/lost/" + id, id);
        assertThat(operations().effects(id)).isEqualTo(1);
    }

    @ParameterizedTest
    @ValueSource(strings = {"jdbc", "jpa"})
    @DisplayName("P6: a bean method does not run again after the commit of its caller was lost")
    void aBeanMethodIsUnknownIfTheCommitOfItsCallerIsLost(String manager) {
        commitInVain(Operations.LOSES, operations(), manager, id);
        assertThatThrownBy(() -> operations().once(id))
                .isInstanceOf(ExecutionRefusedException.class)
                .hasMessageContaining("outcome-unknown");
        assertThat(operations().effects(id)).isEqualTo(1);
    }

    @ParameterizedTest
    @ValueSource(strings = {"jdbc", "jpa"})
    void aCommitThatIsNotSentIsReleased(String manager) {
        server.assertRunsAgainAfterAFailure("/" + manager + "/refused/" + id, id);
        TransactionTemplate callers = operations().transaction(manager);
        assertThatThrownBy(() -> callers.executeWithoutResult(status -> {
                    operations().once(id);
                    refuseCommit();
                }))
                .hasMessage("before the commit");
        operations().once(id);
        assertThat(operations().effects(id)).isEqualTo(1);
    }

    @ParameterizedTest
    @ValueSource(strings = {"jdbc", "jpa"})
    void aTransactionThatIsMarkedForRollbackIsReleased(String manager) {
        TransactionTemplate callers = operations().transaction(manager);
        assertThatThrownBy(() -> callers.executeWithoutResult(status -> {
                    operations().once(id);
                    callers.executeWithoutResult(TransactionStatus::setRollbackOnly);
                }))
                .isInstanceOf(UnexpectedRollbackException.class);
        operations().once(id);
        assertThat(operations().effects(id)).isEqualTo(1);
    }

    @Test
    void aFlushThatFailsBeforeTheCommitIsReleased() {
        EntityManagerFactory factory = server.bean(EntityManagerFactory.class);
        TransactionTemplate callers = operations().transaction("jpa");
        assertThatThrownBy(() -> callers.executeWithoutResult(status -> {
                    operations().once(id);
                    flushWhatIsRefused(factory);
                }))
                .hasRootCauseInstanceOf(SQLIntegrityConstraintViolationException.class);
        operations().once(id);
        assertThat(operations().effects(id)).isEqualTo(1);
    }

    /** The property did not apply to bean methods. */
    @Test
    void aFailedCommitIsReleasedIfCommitsAreNoEffects() {
        try (TestServer releasing =
                TestServer.start(Application.class, "--idempotence.transactions.never-release-after-commit=false")) {
            Operations operations = releasing.bean(Operations.class);
            for (String manager : List.of("jdbc", "jpa")) {
                releasing.assertRunsAgainAfterAFailure("/" + manager + "/lost/" + id, id + manager);
                String call = UUID.randomUUID().toString();
                commitInVain(Operations.LOSES, operations, manager, call);
                operations.once(call);
                assertThat(operations.effects(call)).as("it ran again").isEqualTo(2);
            }
            commitInVain(Operations.CONFLICTS, operations, "plain", id);
            assertThatThrownBy(() -> operations.once(id)).hasMessageContaining("outcome-unknown");
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    @DisplayName("P2: a mark shows that a commit took effect whose reply was lost")
    void aLostCommitIsResolvedInInTransactionMode(boolean commitsAreEffects) {
        try (TestServer marking = TestServer.start(
                Application.class,
                "--idempotence.transactions.never-release-after-commit=" + commitsAreEffects,
                "--idempotence.server.storage=jdbc",
                "--idempotence.server.jdbc.create-if-missing=true",
                "--idempotence.server.jdbc.in-transaction=true")) {
            Operations operations = marking.bean(Operations.class);
            for (String manager : List.of("jdbc", "jpa", "plain")) {
                String path = "/" + manager + "/lost/" + id + manager;
                assertThat(marking.post(path, id + manager).status()).isEqualTo(500);
                assertThat(marking.post(path, id + manager).refusal()).isEqualTo("result-unavailable");
                assertThat(operations.effects(id + manager)).isEqualTo(1);
                String call = UUID.randomUUID().toString();
                commitInVain(Operations.LOSES, operations, manager, call);
                assertThatThrownBy(() -> operations.once(call)).hasMessageContaining("result-unavailable");
                assertThat(operations.effects(call)).isEqualTo(1);
            }
            // Nothing was committed, but without a mark, the property decides.
            if (commitsAreEffects) {
                marking.assertUnknownAfterAFailure("/jdbc/conflict/" + id, id);
            } else {
                marking.assertRunsAgainAfterAFailure("/jdbc/conflict/" + id, id);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"jdbc", "jpa"})
    void aCommitThatTheDatabaseRefusesIsUnknown(String manager) {
        server.assertUnknownAfterAFailure("/" + manager + "/conflict/" + id, id);
        assertThat(operations().effects(id)).isZero();
    }

    @Test
    void aManagerThatPassesTheErrorOnReleasesTheIdOfAHandlerOnly() {
        server.assertRunsAgainAfterAFailure("/plain/conflict/" + id, id);
        commitInVain(Operations.CONFLICTS, operations(), "plain", id);
        assertThatThrownBy(() -> operations().once(id)).hasMessageContaining("outcome-unknown");
        assertThat(operations().effects(id)).isZero();
    }
}
