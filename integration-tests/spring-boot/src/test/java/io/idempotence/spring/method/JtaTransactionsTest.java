package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.FailureRule;
import io.idempotence.Idempotent;
import io.idempotence.server.ExecutionRefusedException;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import jakarta.transaction.SystemException;
import jakarta.transaction.UserTransaction;
import java.lang.reflect.Proxy;
import java.sql.SQLException;
import java.util.UUID;
import javax.sql.DataSource;
import javax.transaction.xa.XAResource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.stereotype.Service;
import org.springframework.transaction.HeuristicCompletionException;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.jta.JtaTransactionManager;
import org.springframework.transaction.support.DefaultTransactionStatus;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** Nothing is released after a commit of JTA: two databases of PostgreSQL in one transaction of Narayana. */
@Timeout(180)
@Tag("all")
class JtaTransactionsTest {
    private static TestServer server;
    private static Bookings bookings;

    private final String id = UUID.randomUUID().toString();

    @BeforeAll
    static void start() {
        server = TestServer.start(Application.class);
        bookings = server.bean(Bookings.class);
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    @Import({JtaApplication.class, Handlers.class, Bookings.class})
    static class Application {
        /** As managers do that give the error of one database as the cause. */
        @Bean
        PlatformTransactionManager withCauses(JtaTransactionManager manager) {
            return new JtaTransactionManager(manager.getUserTransaction(), manager.getTransactionManager()) {
                @Override
                protected void doCommit(DefaultTransactionStatus status) {
                    super.doCommit(status);
                    throw new HeuristicCompletionException(
                            HeuristicCompletionException.STATE_MIXED, new SQLException("deadlock", "40P01"));
                }
            };
        }
    }

    @Service
    static class Bookings {
        private final JtaTransactionManager manager;
        private final JdbcTemplate orders;
        private final JdbcTemplate stock;
        private final EmbeddedPostgres postgres;

        Bookings(
                @Qualifier("transactionManager") JtaTransactionManager manager,
                @Qualifier("orders") DataSource orders,
                @Qualifier("stock") DataSource stock,
                EmbeddedPostgres postgres) {
            this.manager = manager;
            this.orders = new JdbcTemplate(orders);
            this.stock = new JdbcTemplate(stock);
            this.postgres = postgres;
        }

        TransactionTemplate transaction() {
            return new TransactionTemplate(manager);
        }

        UserTransaction unseen() {
            return manager.getUserTransaction();
        }

        void book(String id) {
            bookOrder(id);
            stock.update("insert into effect values (?)", id);
        }

        void bookOrder(String id) {
            orders.update("insert into effect values (?)", id);
        }

        void commit(String id) {
            transaction().executeWithoutResult(status -> book(id));
        }

        int orders(String id) {
            return orders.queryForObject("select count(*) from effect where id = ?", Integer.class, id);
        }

        int stock(String id) {
            return stock.queryForObject("select count(*) from effect where id = ?", Integer.class, id);
        }

        /** Has an operator roll back the part of the second database, between the two phases of the commit. */
        void letAnOperatorInterfere() {
            JdbcTemplate operator = new JdbcTemplate(postgres.getDatabase("postgres", "stock"));
            try {
                manager.getTransactionManager()
                        .getTransaction()
                        .enlistResource(whenPrepared(() -> operator.execute("rollback prepared '"
                                + operator.queryForObject(
                                        "select gid from pg_prepared_xacts where database = 'stock'", String.class)
                                + "'")));
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }

        void markRollbackOnly() {
            try {
                manager.getUserTransaction().setRollbackOnly();
            } catch (SystemException e) {
                throw new IllegalStateException(e);
            }
        }

        void violateAtTheEnd(String id) {
            orders.update("insert into late values (?)", id);
            orders.update("insert into late values (?)", id);
        }

        void endTheSession() {
            Integer session = orders.queryForObject("select pg_backend_pid()", Integer.class);
            new JdbcTemplate(postgres.getPostgresDatabase())
                    .queryForObject("select pg_terminate_backend(?)", Boolean.class, session);
        }

        private static XAResource whenPrepared(Runnable action) {
            return (XAResource) Proxy.newProxyInstance(
                    XAResource.class.getClassLoader(),
                    new Class<?>[] {XAResource.class},
                    (proxy, method, arguments) -> switch (method.getName()) {
                        case "prepare" -> {
                            action.run();
                            yield XAResource.XA_RDONLY;
                        }
                        case "isSameRM", "equals" -> proxy == arguments[0];
                        case "setTransactionTimeout" -> false;
                        case "getTransactionTimeout" -> 0;
                        case "hashCode" -> 0;
                        case "toString" -> "participant";
                        default -> null;
                    });
        }

        @Idempotent(id = "#id")
        public int once(String id) {
            book(id);
            return orders(id);
        }
    }

    @RestController
    @Idempotent
    static class Handlers {
        private final Bookings bookings;
        private final PlatformTransactionManager withCauses;

        Handlers(Bookings bookings, @Qualifier("withCauses") PlatformTransactionManager withCauses) {
            this.bookings = bookings;
            this.withCauses = withCauses;
        }

        /** Works in a transaction that fails. */
        private String inTransaction(Runnable work) {
            bookings.transaction().executeWithoutResult(status -> work.run());
            return "never";
        }

        @PostMapping("/thrown-after/{id}")
        String thrownAfter(@PathVariable("id") String id) {
            bookings.commit(id);
            throw new IllegalStateException("after the commit");
        }

        @PostMapping("/unseen/{id}")
        String unseen(@PathVariable("id") String id) throws Exception {
            UserTransaction transaction = bookings.unseen();
            transaction.begin();
            bookings.transaction().executeWithoutResult(joined -> bookings.book(id));
            transaction.commit();
            throw new IllegalStateException("after the commit");
        }

        @PostMapping("/kept/{id}")
        @Idempotent(failureRule = FailureRule.STORE_EVERYTHING)
        String kept(@PathVariable("id") String id) {
            return thrownAfter(id);
        }

        @PostMapping("/requires-new/{id}")
        String requiresNew(@PathVariable("id") String id) {
            TransactionTemplate separate = bookings.transaction();
            separate.setPropagationBehavior(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
            return inTransaction(() -> {
                separate.executeWithoutResult(also -> bookings.book(id));
                throw new IllegalStateException("rolls the outer one back");
            });
        }

        @PostMapping("/in-doubt/{id}")
        String inDoubt(@PathVariable("id") String id) {
            return inTransaction(() -> {
                bookings.book(id);
                bookings.letAnOperatorInterfere();
            });
        }

        @PostMapping("/in-doubt-with-cause/{id}")
        String inDoubtWithCause(@PathVariable("id") String id) {
            new TransactionTemplate(withCauses).executeWithoutResult(status -> bookings.bookOrder(id));
            return "never";
        }

        @PostMapping("/lost-at-commit/{id}")
        String lost(@PathVariable("id") String id) {
            return inTransaction(() -> {
                bookings.bookOrder(id);
                bookings.endTheSession();
            });
        }

        @PostMapping("/rolled-back/{id}")
        String rolledBack(@PathVariable("id") String id) {
            return inTransaction(() -> {
                bookings.book(id);
                throw new IllegalStateException("rolls back");
            });
        }

        @PostMapping("/marked-rollback-only/{id}")
        String rollbackOnly(@PathVariable("id") String id) {
            inTransaction(() -> {
                bookings.book(id);
                bookings.markRollbackOnly();
            });
            throw new IllegalStateException("after a rollback");
        }

        @PostMapping("/constraint-at-commit/{id}")
        String constraintAtCommit(@PathVariable("id") String id) {
            return inTransaction(() -> bookings.violateAtTheEnd(id));
        }

        @PostMapping("/constraint-at-prepare/{id}")
        String constraintAtPrepare(@PathVariable("id") String id) {
            return inTransaction(() -> {
                bookings.book(id);
                bookings.violateAtTheEnd(id);
            });
        }
    }

    @ParameterizedTest
    @DisplayName("P6: a failure after a commit does not release the ID")
    @ValueSource(strings = {"thrown-after", "requires-new"})
    void aFailureAfterACommitDoesNotReleaseTheId(String how) {
        server.assertUnknownAfterAFailure("/" + how + "/" + id, id);
        assertThat(bookings.orders(id)).isEqualTo(1);
        assertThat(bookings.stock(id)).isEqualTo(1);
    }

    @Test
    void afterACommitTheFailureIsKeptIfTheOperationRequiresIt() {
        server.assertReplaysAFailure("/kept/" + id, id);
        assertThat(bookings.orders(id)).isEqualTo(1);
    }

    @Test
    @DisplayName("P6: a commit of which a part was rolled back does not release the ID")
    void aCommitThatIsMixedDoesNotReleaseTheId() {
        server.assertUnknownAfterAFailure("/in-doubt/" + id, id);
        assertThat(bookings.orders(id)).isEqualTo(1);
        assertThat(bookings.stock(id)).isZero();
    }

    /** The ID was released, because one of the databases had rolled back. */
    @Test
    @DisplayName("P6: a commit that is mixed does not release the ID, whatever its cause")
    void aCommitThatIsMixedDoesNotReleaseTheIdWhateverItsCause() {
        server.assertUnknownAfterAFailure("/in-doubt-with-cause/" + id, id);
        assertThat(bookings.orders(id)).isEqualTo(1);
    }

    @Test
    @DisplayName("P6: a commit whose reply was lost does not release the ID")
    void aCommitWhoseReplyWasLostDoesNotReleaseTheId() {
        server.assertUnknownAfterAFailure("/lost-at-commit/" + id, id);
    }

    @ParameterizedTest
    @ValueSource(strings = {"rolled-back", "marked-rollback-only", "constraint-at-commit", "constraint-at-prepare"})
    void whatWasRolledBackIsReleased(String how) {
        server.assertRunsAgainAfterAFailure("/" + how + "/" + id, id);
        assertThat(bookings.orders(id)).isZero();
        assertThat(bookings.stock(id)).isZero();
    }

    @Test
    @DisplayName("P6: a bean method is recorded when the transaction of its caller has ended")
    void aBeanMethodIsRecordedWhenTheTransactionOfItsCallerHasEnded() {
        TransactionTemplate transaction = bookings.transaction();
        assertThatThrownBy(() -> transaction.executeWithoutResult(status -> {
                    bookings.once(id);
                    throw new IllegalStateException("rolls back");
                }))
                .hasMessage("rolls back");
        assertThat(transaction.<Integer>execute(status -> bookings.once(id)))
                .as("it runs again")
                .isEqualTo(1);
        assertThat(transaction.<Integer>execute(status -> bookings.once(id))).isEqualTo(1);
        assertThat(bookings.orders(id)).isEqualTo(1);
    }

    @Test
    @DisplayName("P6: a bean method whose caller's commit is mixed is unknown")
    void aBeanMethodWhoseCallersCommitIsMixedIsUnknown() {
        TransactionTemplate transaction = bookings.transaction();
        assertThatThrownBy(() -> transaction.executeWithoutResult(status -> {
                    bookings.once(id);
                    bookings.letAnOperatorInterfere();
                }))
                .isInstanceOf(HeuristicCompletionException.class);
        assertThatThrownBy(() -> bookings.once(id))
                .isInstanceOf(ExecutionRefusedException.class)
                .hasMessageContaining("unknown");
        assertThat(bookings.orders(id)).isEqualTo(1);
    }

    /** The starter does not see it, so its end changes nothing. The pages say so. */
    @Test
    void aBeanMethodInATransactionThatIsNoneOfSpringIsRecordedAtOnce() throws Exception {
        UserTransaction unseen = bookings.unseen();
        unseen.begin();
        bookings.once(id);
        unseen.rollback();
        assertThat(bookings.once(id)).as("the stored result").isEqualTo(1);
        assertThat(bookings.orders(id)).isZero();
    }

    @Test
    void aCommitOfATransactionThatIsNoneOfSpringIsNoEffect() {
        server.assertRunsAgainAfterAFailure("/unseen/" + id, id);
        assertThat(bookings.orders(id)).isEqualTo(2);
    }
}
