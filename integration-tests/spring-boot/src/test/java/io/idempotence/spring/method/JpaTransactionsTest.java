package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import io.idempotence.Idempotent;
import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.EntityManager;
import jakarta.persistence.EntityManagerFactory;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.Id;
import jakarta.persistence.PersistenceContext;
import java.util.Map;
import java.util.UUID;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Primary;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.orm.jpa.JpaTransactionManager;
import org.springframework.orm.jpa.LocalContainerEntityManagerFactoryBean;
import org.springframework.orm.jpa.persistenceunit.PersistenceManagedTypes;
import org.springframework.orm.jpa.vendor.HibernateJpaVendorAdapter;
import org.springframework.stereotype.Service;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** Transactions of JPA, with Hibernate, whose {@code DataSource} has the records in in-transaction mode, too. */
@Timeout(180)
class JpaTransactionsTest {
    private static TestServer server;
    private static JdbcTemplate jdbc;

    private final String id = UUID.randomUUID().toString();

    @BeforeAll
    static void start() {
        server = TestServer.start(
                Application.class,
                "--idempotence.server.storage=jdbc",
                "--idempotence.server.jdbc.create-if-missing=true",
                "--idempotence.server.jdbc.in-transaction=true");
        jdbc = server.bean(JdbcTemplate.class);
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    @Entity(name = "Booking")
    static class Booking {
        @Id
        @GeneratedValue
        Long number;

        @Column(unique = true)
        String what;
    }

    /** A pool of connections to a database that nobody else uses. */
    static DataSource ownDatabase() {
        HikariDataSource pool = new HikariDataSource();
        pool.setJdbcUrl("jdbc:h2:mem:" + UUID.randomUUID());
        pool.setUsername("sa");
        return pool;
    }

    /** The entities of an application, for tests of its transactions. */
    static class Entities {
        @Bean
        LocalContainerEntityManagerFactoryBean entityManagerFactory(DataSource dataSource) {
            LocalContainerEntityManagerFactoryBean factory = new LocalContainerEntityManagerFactoryBean();
            factory.setDataSource(dataSource);
            factory.setManagedTypes(PersistenceManagedTypes.of(Booking.class.getName()));
            factory.setJpaVendorAdapter(new HibernateJpaVendorAdapter());
            factory.setJpaPropertyMap(Map.of("hibernate.hbm2ddl.auto", "create-drop"));
            return factory;
        }
    }

    @Import({Handlers.class, Bookings.class, Entities.class})
    static class Application {
        @Bean
        DataSource dataSource() {
            return ownDatabase();
        }

        @Bean
        @Primary
        PlatformTransactionManager transactionManager(EntityManagerFactory factory) {
            return new JpaTransactionManager(factory);
        }

        /** One manager with two names, as applications have whose libraries expect others. */
        @Bean
        PlatformTransactionManager also(PlatformTransactionManager transactionManager) {
            return transactionManager;
        }
    }

    @Service
    static class Bookings {
        @PersistenceContext
        private EntityManager entities;

        @Transactional
        public void book(String text) {
            Booking booking = new Booking();
            booking.what = text;
            entities.persist(booking);
        }

        @Transactional
        public void bookAndFail(String text) {
            book(text);
            entities.flush();
            throw new IllegalStateException("rolled back");
        }
    }

    @RestController
    @Idempotent
    static class Handlers {
        private final Bookings bookings;

        Handlers(Bookings bookings) {
            this.bookings = bookings;
        }

        @PostMapping("/book/{text}")
        String book(@PathVariable String text) {
            bookings.book(text);
            return "booked";
        }

        @PostMapping("/roll-back/{text}")
        String rollBack(@PathVariable String text) {
            bookings.bookAndFail(text);
            return "never";
        }

        @PostMapping("/commit-and-fail/{text}")
        String commitAndFail(@PathVariable String text) {
            bookings.book(text);
            throw new IllegalStateException("after the commit");
        }
    }

    private int bookings() {
        return jdbc.queryForObject("select count(*) from booking where what = ?", Integer.class, id);
    }

    private int marks() {
        return jdbc.queryForObject("select count(*) from idempotence_applied", Integer.class);
    }

    @Test
    @DisplayName("P2: the mark is committed with the entities")
    void theMarkIsCommittedWithTheEntities() {
        int before = marks();
        assertThat(server.post("/book/" + id, id).body()).isEqualTo("booked");
        assertThat(server.post("/book/" + id, id).isReplayed()).isTrue();
        assertThat(bookings()).isEqualTo(1);
        assertThat(marks()).isEqualTo(before + 1);
        // As a process leaves it that dies between its commit and its record.
        jdbc.update("delete from idempotence_record");
        assertThat(server.post("/book/" + id, id).refusal()).isEqualTo("result-unavailable");
        assertThat(bookings()).isEqualTo(1);
    }

    @Test
    void aRollbackReleasesTheId() {
        int before = marks();
        assertThat(server.post("/roll-back/" + id, id).status()).isEqualTo(500);
        assertThat(server.post("/roll-back/" + id, id).refusal())
                .as("it ran again")
                .isNull();
        assertThat(bookings()).isZero();
        assertThat(marks()).isEqualTo(before);
    }

    @Test
    void aFailureAfterACommitDoesNotReleaseTheId() {
        assertThat(server.post("/commit-and-fail/" + id, id).status()).isEqualTo(500);
        assertThat(server.post("/commit-and-fail/" + id, id).refusal())
                .as("the mark shows that it was applied")
                .isEqualTo("result-unavailable");
        assertThat(bookings()).isEqualTo(1);
    }

    @Test
    void aFailedCommitIsUnknown() {
        server.bean(Bookings.class).book(id);
        // The unique key is checked when the commit flushes the entity.
        server.assertUnknownAfterAFailure("/book/" + id, id);
        assertThat(bookings()).isEqualTo(1);
    }
}
