package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.UUID;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.jdbc.core.JdbcTemplate;

/** Transactions of JPA, with Hibernate, whose database has no records: nothing marks an execution there. */
@Tag("all")
@Timeout(180)
class PlainJpaTransactionsTest {
    private static TestServer server;

    private final String id = UUID.randomUUID().toString();

    @BeforeAll
    static void start() {
        server = TestServer.start(JpaTransactionsTest.Application.class);
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    private int bookings() {
        return server.bean(JdbcTemplate.class)
                .queryForObject("select count(*) from booking where what = ?", Integer.class, id);
    }

    @Test
    void aRollbackReleasesTheId() {
        server.assertRunsAgainAfterAFailure("/roll-back/" + id, id);
        assertThat(bookings()).isZero();
    }

    @Test
    @DisplayName("P6: a failure after a commit of JPA does not release the ID")
    void aFailureAfterACommitIsUnknown() {
        server.assertUnknownAfterAFailure("/commit-and-fail/" + id, id);
        assertThat(bookings()).isEqualTo(1);
    }

    @Test
    @DisplayName("P6: a commit of JPA that failed does not release the ID")
    void aFailedCommitIsUnknown() {
        server.bean(JpaTransactionsTest.Bookings.class).book(id);
        // The unique key is checked when the commit flushes the entity.
        server.assertUnknownAfterAFailure("/book/" + id, id);
        assertThat(bookings()).isEqualTo(1);
    }
}
