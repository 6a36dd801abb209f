package io.idempotence.server.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import ch.qos.logback.classic.spi.ILoggingEvent;
import io.idempotence.server.CapturedLog;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Tests of how many rows a batch of the cleanup deletes. */
class ExpiredRowsTest {
    private final List<Integer> asked = new CopyOnWriteArrayList<>();

    /** Rows with large results take long: a batch of the usual size would run into the timeout every time. */
    @Tag("all") // takes a quarter of a minute
    @Test
    void rowsThatAreSlowToDeleteAreDeletedInSmallerBatches() throws Exception {
        Databases databases = Databases.POSTGRESQL;
        try (JdbcIdempotenceStorage storage = JdbcIdempotenceStorage.builder(databases.pool())
                .table("slow")
                .createIfMissing()
                .statementTimeout(Duration.ofSeconds(1))
                .cleanUpEvery(Duration.ofSeconds(1))
                .build()) {
            assertThat(storage).isNotNull();
            databases.execute("CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS"
                    + " $$ BEGIN PERFORM pg_sleep(0.0015); RETURN OLD; END $$");
            databases.execute("CREATE TRIGGER slowly BEFORE DELETE ON slow FOR EACH ROW EXECUTE PROCEDURE slowly()");
            try (Connection connection = databases.pool().getConnection();
                    PreparedStatement insert = connection.prepareStatement("INSERT INTO slow"
                            + " (id, format, state, taken_over, fence, owner, fingerprint, lease_until, expires_at)"
                            + " SELECT 'expired-' || i, 1, 'P', 0, 1, '', '', 0, 1 FROM generate_series(1, 1000) i")) {
                insert.executeUpdate();
            }
            await().atMost(Duration.ofSeconds(60)).until(() -> databases.number("SELECT COUNT(*) FROM slow") == 0);
        }
    }

    private ExpiredRows cleanup(int rows, int mostAtOnce) {
        AtomicInteger left = new AtomicInteger(rows);
        return new ExpiredRows(Duration.ofMillis(20), limit -> {
            asked.add(limit);
            if (Math.min(limit, left.get()) > mostAtOnce) {
                throw new IllegalStateException("no reply within the statement timeout");
            }
            return left.getAndUpdate(now -> Math.max(0, now - limit)) - left.get();
        });
    }

    @Test
    void batchIsHalvedUntilItWorksAndGrowsWhileItDoes() {
        try (CapturedLog log = CapturedLog.of(JdbcIdempotenceStorage.class);
                ExpiredRows cleanup = cleanup(2_000, 300)) {
            assertThat(cleanup).isNotNull();
            await().until(() -> asked.size() >= 6);
            assertThat(asked).startsWith(1_000, 500, 250, 282, 318, 159);
            assertThat(log.warnings())
                    .extracting(ILoggingEvent::getFormattedMessage)
                    .isNotEmpty()
                    .allSatisfy(message -> assertThat(message)
                            .startsWith("expired records could not be deleted; a batch of half the size follows"));
        }
    }

    /** Otherwise each interval's backlog would begin with batches that run into the timeout. */
    @Test
    void sizeThatWorkedOutlivesTheBacklog() {
        try (ExpiredRows cleanup = cleanup(2_000, 300)) {
            assertThat(cleanup).isNotNull();
            await().until(() -> asked.size() >= 13);
            assertThat(List.copyOf(asked).subList(5, 13)).containsExactly(159, 179, 202, 228, 257, 290, 327, 368);
        }
    }

    /** A backlog of large rows ends with such a failure time and again. */
    @Test
    void failureAfterABatchThatWorkedIsReportedWithoutAStackTrace() {
        try (CapturedLog log = CapturedLog.of(JdbcIdempotenceStorage.class);
                ExpiredRows cleanup = cleanup(2_000, 300)) {
            assertThat(cleanup).isNotNull();
            await().until(() -> log.warnings().size() == 3);
            assertThat(log.warnings())
                    .extracting(event -> event.getThrowableProxy() != null)
                    .containsExactly(true, true, false);
            assertThat(log.warnings().get(2).getFormattedMessage())
                    .endsWith("IllegalStateException: no reply within the statement timeout");
        }
    }

    private ExpiredRows cleanupOfABacklogAfter(int failures) {
        AtomicInteger left = new AtomicInteger(failures);
        return new ExpiredRows(Duration.ofMillis(2), limit -> {
            asked.add(limit);
            if (left.getAndDecrement() > 0) {
                throw new IllegalStateException("no connection");
            }
            return limit;
        });
    }

    /** An outage shrinks it, too. */
    @Test
    void batchGrowsBackWhileThereAreMoreRows() {
        try (ExpiredRows cleanup = cleanupOfABacklogAfter(2)) {
            assertThat(cleanup).isNotNull();
            await().until(() -> asked.size() >= 17);
            assertThat(asked).startsWith(1_000, 500, 250, 282, 318);
            assertThat(List.copyOf(asked).subList(14, 17)).containsOnly(1_000);
        }
    }

    @Test
    void batchHasAtLeastOneRow() {
        try (ExpiredRows cleanup = cleanupOfABacklogAfter(12)) {
            assertThat(cleanup).isNotNull();
            await().until(() -> asked.size() >= 15);
            assertThat(List.copyOf(asked).subList(8, 15)).containsExactly(3, 1, 1, 1, 1, 2, 3);
        }
    }
}
