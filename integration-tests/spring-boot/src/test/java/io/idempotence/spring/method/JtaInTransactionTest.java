package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import io.idempotence.Idempotent;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.util.List;
import java.util.UUID;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** In-transaction mode with JTA: the records are in a database whose connections take part in its transactions. */
@Timeout(180)
@Tag("all")
class JtaInTransactionTest {
    private static TestServer server;
    private static Handlers handlers;

    private final String id = UUID.randomUUID().toString();

    @BeforeAll
    static void start() {
        server = startWithRecordsIn("orders");
        handlers = server.bean(Handlers.class);
    }

    private static TestServer startWithRecordsIn(String dataSource) {
        return TestServer.start(
                Application.class,
                "--idempotence.server.storage=jdbc",
                "--idempotence.server.storage-bean=" + dataSource,
                "--idempotence.server.jdbc.create-if-missing=true",
                "--idempotence.server.jdbc.in-transaction=true");
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    @BeforeEach
    void reset() {
        handlers.stock.update("delete from effect");
        handlers.orders.update("delete from effect");
        handlers.orders.update("delete from idempotence_record");
        handlers.orders.update("delete from idempotence_applied");
    }

    @Import({JtaApplication.class, Handlers.class})
    static class Application {
        /** The same database as that of the orders, without JTA. */
        @Bean
        DataSource plain(EmbeddedPostgres postgres, @Qualifier("orders") DataSource orders) {
            HikariDataSource pool = new HikariDataSource();
            pool.setJdbcUrl(postgres.getJdbcUrl("postgres", "orders"));
            pool.setUsername("postgres");
            return pool;
        }

        @Bean
        PlatformTransactionManager ofPlain(@Qualifier("plain") DataSource plain) {
            return new JdbcTransactionManager(plain);
        }
    }

    @RestController
    @Idempotent
    static class Handlers {
        private final JdbcTemplate orders;
        private final JdbcTemplate stock;
        private final JdbcTemplate plain;
        private final TransactionTemplate jta;
        private final TransactionTemplate ofPlain;
        private volatile RuntimeException failure;

        Handlers(
                @Qualifier("orders") DataSource orders,
                @Qualifier("stock") DataSource stock,
                @Qualifier("plain") DataSource plain,
                @Qualifier("transactionManager") PlatformTransactionManager jta,
                @Qualifier("ofPlain") PlatformTransactionManager ofPlain) {
            this.orders = new JdbcTemplate(orders);
            this.stock = new JdbcTemplate(stock);
            this.plain = new JdbcTemplate(plain);
            this.jta = new TransactionTemplate(jta);
            this.ofPlain = new TransactionTemplate(ofPlain);
        }

        @PostMapping("/both")
        String both() {
            jta.executeWithoutResult(status -> bookBoth());
            return "booked";
        }

        private void bookBoth() {
            orders.update("insert into effect values ('orders')");
            stock.update("insert into effect values ('stock')");
        }

        @PostMapping("/rolled-back")
        String rolledBack() {
            jta.executeWithoutResult(status -> {
                bookBoth();
                throw new IllegalStateException("rolls back");
            });
            return "never";
        }

        @PostMapping("/thrown-after")
        String thrownAfter() {
            both();
            throw new IllegalStateException("after the commit");
        }

        @PostMapping("/stock-only")
        String stockOnly() {
            try {
                jta.executeWithoutResult(status -> stock.update("insert into effect values ('stock')"));
            } catch (RuntimeException e) {
                failure = e;
                throw e;
            }
            return "booked";
        }

        @PostMapping("/stock-within-plain")
        String stockWithinPlain() {
            ofPlain.executeWithoutResult(status -> {
                plain.update("insert into effect values ('plain')");
                stockOnly();
            });
            return "booked";
        }

        @PostMapping("/plain-in-jta")
        String plainInJta() {
            jta.executeWithoutResult(status -> {
                stock.update("insert into effect values ('stock')");
                plain.queryForObject("select count(*) from effect", Integer.class);
            });
            return "booked";
        }
    }

    private static int effects(JdbcTemplate database) {
        return database.queryForObject("select count(*) from effect", Integer.class);
    }

    private static int marks() {
        return handlers.orders.queryForObject("select count(*) from idempotence_applied", Integer.class);
    }

    @Test
    @DisplayName("P2: a transaction of JTA commits the mark with all its data")
    void aTransactionOfJtaCommitsTheMarkWithAllItsData() {
        assertThat(server.post("/both", id).body()).isEqualTo("booked");
        assertThat(server.post("/both", id).isReplayed()).isTrue();
        assertThat(marks()).isEqualTo(1);
        // As a process leaves it that dies between its commit and its record.
        assertThat(handlers.orders.update("delete from idempotence_record")).isEqualTo(1);
        assertThat(server.post("/both", id).refusal()).isEqualTo("result-unavailable");
        assertThat(effects(handlers.orders)).isEqualTo(1);
        assertThat(effects(handlers.stock)).isEqualTo(1);
    }

    @Test
    void aFailureAfterACommitDoesNotReleaseTheId() {
        assertThat(server.post("/thrown-after", id).status()).isEqualTo(500);
        assertThat(server.post("/thrown-after", id).refusal()).isEqualTo("result-unavailable");
        assertThat(effects(handlers.orders)).isEqualTo(1);
    }

    @Test
    void aRollbackTakesTheMarkBackAndReleasesTheId() {
        server.assertRunsAgainAfterAFailure("/rolled-back", id);
        assertThat(marks()).isZero();
        assertThat(effects(handlers.orders)).isZero();
        assertThat(effects(handlers.stock)).isZero();
    }

    @Test
    void aTransactionThatCannotCommitTheMarkIsRolledBack() {
        assertThat(server.post("/stock-only", id).status()).isEqualTo(500);
        assertThat(handlers.failure)
                .hasMessageContaining("is not one of the DataSource that has the idempotence records");
        assertThat(effects(handlers.stock)).isZero();
        assertThat(marks()).isZero();
        assertThat(server.post("/stock-only", id).refusal())
                .as("the ID was released")
                .isNull();
    }

    /** The first one committed before the mark did. */
    @Test
    void aTransactionWithoutTheConnectionOfTheRecordsIsRolledBackToo() {
        try (TestServer other = startWithRecordsIn("plain")) {
            for (String path : List.of("/stock-within-plain", "/plain-in-jta")) {
                assertThat(other.post(path, UUID.randomUUID().toString()).status())
                        .as(path)
                        .isEqualTo(500);
                assertThat(effects(other.bean(Handlers.class).stock)).as(path).isZero();
                assertThat(effects(other.bean(Handlers.class).orders)).as(path).isZero();
            }
        }
    }
}
