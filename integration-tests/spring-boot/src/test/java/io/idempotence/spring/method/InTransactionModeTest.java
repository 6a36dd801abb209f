package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import io.idempotence.Idempotent;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicReference;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Primary;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.SingleConnectionDataSource;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.stereotype.Service;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.annotation.Propagation;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** In-transaction mode: {@code @Transactional} handlers and services commit the mark of their execution with their data. */
@Timeout(60)
class InTransactionModeTest {
    private static final AtomicReference<Runnable> BEFORE_COMMIT = new AtomicReference<>();
    private static final String DATABASE = "jdbc:h2:mem:" + UUID.randomUUID();
    private static final JdbcTemplate ELSEWHERE =
            new JdbcTemplate(new SingleConnectionDataSource("jdbc:h2:mem:" + UUID.randomUUID(), "sa", "", true));
    private static TestServer server;
    private static JdbcTemplate jdbc;

    private final String id = UUID.randomUUID().toString();

    private static HikariDataSource pool() {
        HikariDataSource pool = new HikariDataSource();
        pool.setJdbcUrl(DATABASE);
        pool.setUsername("sa");
        pool.setConnectionTimeout(2_000);
        return pool;
    }

    @BeforeAll
    static void start() {
        server = TestServer.start(
                Application.class,
                "--idempotence.server.storage=jdbc",
                "--idempotence.server.jdbc.create-if-missing=true",
                "--idempotence.server.jdbc.in-transaction=true");
        jdbc = server.bean(JdbcTemplate.class);
        jdbc.execute("create table effect (id varchar(100))");
        ELSEWHERE.execute("create table effect (id varchar(100))");
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    @BeforeEach
    void reset() {
        BEFORE_COMMIT.set(() -> {});
        jdbc.update("delete from effect");
        jdbc.update("delete from idempotence_applied");
    }

    @Import({Handlers.class, Bookings.class})
    static class Application {
        @Bean
        DataSource dataSource() {
            return pool();
        }

        @Bean
        @Primary
        PlatformTransactionManager transactionManager(DataSource dataSource) {
            return new JdbcTransactionManager(dataSource);
        }

        @Bean
        PlatformTransactionManager elsewhere() {
            return new JdbcTransactionManager(ELSEWHERE.getDataSource());
        }
    }

    @Service
    static class Bookings {
        private final JdbcTemplate jdbc;

        Bookings(JdbcTemplate jdbc) {
            this.jdbc = jdbc;
        }

        @Transactional
        public void book() {
            jdbc.update("insert into effect values ('booked')");
            BEFORE_COMMIT.get().run();
        }

        @Transactional("elsewhere")
        public void bookElsewhere() {
            ELSEWHERE.update("insert into effect values ('elsewhere')");
        }

        @Transactional(propagation = Propagation.REQUIRES_NEW)
        public void bookAgain() {
            jdbc.update("insert into effect values ('again')");
        }

        @Idempotent(id = "#id")
        @Transactional
        public String once(String id) {
            jdbc.update("insert into effect values ('once')");
            return "once";
        }
    }

    @RestController
    @Idempotent
    static class Handlers {
        private final Bookings bookings;

        Handlers(Bookings bookings) {
            this.bookings = bookings;
        }

        @PostMapping("/book")
        String book() {
            bookings.book();
            return "booked";
        }

        @PostMapping("/elsewhere")
        String elsewhere() {
            bookings.bookElsewhere();
            return "booked";
        }

        @PostMapping("/twice")
        String twice() {
            bookings.book();
            bookings.bookAgain();
            return "booked twice";
        }
    }

    private static int effects() {
        return jdbc.queryForObject("select count(*) from effect", Integer.class);
    }

    private static int marks() {
        return jdbc.queryForObject("select count(*) from idempotence_applied", Integer.class);
    }

    @Test
    void aTransactionCommitsTheMarkOfItsExecution() {
        assertThat(server.post("/book", id).body()).isEqualTo("booked");
        assertThat(server.post("/book", id).isReplayed()).isTrue();
        assertThat(effects()).isEqualTo(1);
        assertThat(marks()).isEqualTo(1);
    }

    @Test
    void oneMarkCoversAllTransactionsOfAnExecution() {
        assertThat(server.post("/twice", id).body()).isEqualTo("booked twice");
        assertThat(effects()).isEqualTo(2);
        assertThat(marks()).isEqualTo(1);
    }

    @Test
    void aBeanMethodMarksItsExecutionToo() {
        assertThat(server.bean(Bookings.class).once(id)).isEqualTo("once");
        assertThat(server.bean(Bookings.class).once(id)).isEqualTo("once");
        assertThat(effects()).isEqualTo(1);
        assertThat(marks()).isEqualTo(1);
    }

    @Test
    void aTransactionThatCannotCommitTheMarkIsRolledBack() {
        assertThat(server.post("/elsewhere", id).status()).isEqualTo(500);
        assertThat(ELSEWHERE.queryForObject("select count(*) from effect", Integer.class))
                .isZero();
    }

    @Test
    @DisplayName("P3: an execution that was overtaken rolls back, and its caller gets no success")
    void anExecutionThatWasOvertakenRollsBack() {
        // As if another instance had taken the claim over while this handler was paused.
        BEFORE_COMMIT.set(() -> {
            try (HikariDataSource other = pool()) {
                new JdbcTemplate(other).update("delete from idempotence_record");
            }
        });
        assertThat(server.post("/book", id).status()).isGreaterThanOrEqualTo(400);
        assertThat(effects()).isZero();
        assertThat(marks()).isZero();
    }
}
