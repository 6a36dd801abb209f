package io.idempotence.server.jdbc;

import static io.idempotence.server.Refusals.refusalOf;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import ch.qos.logback.classic.spi.ILoggingEvent;
import com.zaxxer.hikari.HikariDataSource;
import io.idempotence.IdempotenceId;
import io.idempotence.OnAbandoned;
import io.idempotence.http.Refusal;
import io.idempotence.server.CapturedLog;
import io.idempotence.server.ClaimedExecution;
import io.idempotence.server.Decision;
import io.idempotence.server.Duplicates;
import io.idempotence.server.ExecutionRefusedException;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.IdempotentCall;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.IdempotenceRecord.State;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A small connection pool that business code and storage share. */
class JdbcPoolTest {
    private static final int CONNECTIONS = 2;
    private static final Duration LEASE = Duration.ofSeconds(3);

    private final IdempotenceId id = IdempotenceId.of("order-" + UUID.randomUUID());
    private final AtomicInteger runs = new AtomicInteger();
    private final List<IdempotenceEvent> events = new CopyOnWriteArrayList<>();
    private final List<Connection> held = new ArrayList<>();
    private final HikariDataSource pool = Databases.POSTGRESQL.newPool(config -> {
        config.setMaximumPoolSize(CONNECTIONS);
        config.setConnectionTimeout(2_500);
    });
    /** With connections of its own. */
    private final JdbcIdempotenceStorage elsewhere =
            Databases.POSTGRESQL.storage().createIfMissing().build();

    private final IdempotenceAdmin admin = IdempotenceAdmin.of(elsewhere, "default");

    @AfterEach
    void close() throws SQLException {
        giveBack();
        pool.close();
    }

    private void takeAll() {
        // Opening one may take longer than the pool's users wait.
        await().ignoreExceptionsInstanceOf(SQLTransientConnectionException.class)
                .until(() -> {
                    held.add(pool.getConnection());
                    return held.size() == CONNECTIONS;
                });
    }

    private void giveBack() throws SQLException {
        for (Connection connection : held) {
            connection.close();
        }
        held.clear();
    }

    private Idempotence idempotence(IdempotencePolicy policy) {
        return Idempotence.builder(Databases.storage(pool).build())
                .policy(policy)
                .listener((event, which) -> events.add(event))
                .build();
    }

    private State state() {
        return admin.find(admin.executeKey(id)).orElseThrow().state();
    }

    private String pay() {
        return "payment " + runs.incrementAndGet();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    @DisplayName("duplicates that wait hold no connection; there is one for every other call")
    void duplicatesThatWaitHoldNoConnection(boolean firstRunsHere) throws Exception {
        IdempotentCall call = IdempotentCall.of(id);
        try (Idempotence idempotence = idempotence(IdempotencePolicy.defaults());
                Idempotence other = Idempotence.over(elsewhere)) {
            Decision first = (firstRunsHere ? idempotence : other).engine().claim(call, IdempotencePolicy.defaults());
            List<CompletableFuture<Decision>> waiting = new ArrayList<>();
            for (int i = 0; i <= CONNECTIONS; i++) {
                waiting.add(Duplicates.claim(idempotence, call, IdempotencePolicy.defaults(), Duration.ofMinutes(5)));
            }

            assertThat(idempotence.execute(IdempotenceId.of("order-" + UUID.randomUUID()), this::pay))
                    .isEqualTo("payment 1");
            assertThat(waiting).noneMatch(CompletableFuture::isDone);

            ((ClaimedExecution) first).finish(Verdict.KEEP, ClaimResult.noResult());
            for (CompletableFuture<Decision> waiter : waiting) {
                assertThat(waiter.orTimeout(1, TimeUnit.MINUTES).join())
                        .isEqualTo(new Decision.Refuse(Refusal.RESULT_UNAVAILABLE, Duration.ZERO));
            }
        }
    }

    @Test
    @DisplayName("T22: an end that finds no connection is written when there is one again")
    void anEndThatFindsNoConnectionIsWrittenLater() throws Exception {
        try (Idempotence idempotence = idempotence(IdempotencePolicy.defaults())) {
            assertThat(idempotence.execute(id, () -> {
                        takeAll();
                        return pay();
                    }))
                    .isEqualTo("payment 1");
            assertThat(state()).isEqualTo(State.IN_PROGRESS);
            assertThat(events).containsExactly(IdempotenceEvent.CLAIMED, IdempotenceEvent.STORAGE_ERROR);
            assertThat(refusalOf(() -> idempotence.execute(id, this::pay))).isEqualTo(Refusal.STORAGE_UNAVAILABLE);

            giveBack();
            await().until(() -> state() == State.COMPLETED);
            assertThat(idempotence.execute(id, this::pay)).isEqualTo("payment 1");
        }
        assertThat(runs).hasValue(1);
        assertThat(events).doesNotContain(IdempotenceEvent.FENCED, IdempotenceEvent.LOST);
    }

    @Test
    @DisplayName(
            "T9: a lease that ran out for want of a connection is renewed when there is one, unless somebody took over")
    void aLeaseThatFoundNoConnectionIsRenewedLater() throws Exception {
        IdempotencePolicy policy = IdempotencePolicy.builder().lease(LEASE).build();
        try (CapturedLog log = CapturedLog.of(Idempotence.class);
                Idempotence idempotence = idempotence(policy);
                Idempotence other =
                        Idempotence.builder(elsewhere).policy(policy).build()) {
            assertThat(idempotence.execute(id, () -> {
                        takeAll();
                        await().until(() -> state() == State.ABANDONED);
                        assertThat(refusalOf(() -> other.execute(id, this::pay)))
                                .isEqualTo(Refusal.OUTCOME_UNKNOWN);
                        await().until(() -> log.warnings().stream()
                                .map(ILoggingEvent::getFormattedMessage)
                                .anyMatch(warning -> warning.contains("a lease could not be renewed")));
                        giveBack();
                        await().until(() -> state() == State.IN_PROGRESS);
                        return pay();
                    }))
                    .isEqualTo("payment 1");
            assertThat(state()).isEqualTo(State.COMPLETED);
        }
        assertThat(runs).hasValue(1);
        assertThat(events).containsExactly(IdempotenceEvent.CLAIMED);
    }

    @Test
    @DisplayName(
            "T14: an execution that is overtaken because no connection was free to renew returns the other's result")
    void executionThatIsOvertakenForWantOfAConnectionReturnsTheOthersResult() throws Exception {
        IdempotencePolicy policy = IdempotencePolicy.builder()
                .lease(LEASE)
                .onAbandoned(OnAbandoned.RE_EXECUTE)
                .build();
        try (Idempotence idempotence = idempotence(policy);
                Idempotence other =
                        Idempotence.builder(elsewhere).policy(policy).build()) {
            assertThat(idempotence.execute(id, () -> {
                        takeAll();
                        await().ignoreExceptionsInstanceOf(ExecutionRefusedException.class)
                                .until(() -> other.execute(id, this::pay).equals("payment 1"));
                        giveBack();
                        return pay();
                    }))
                    .isEqualTo("payment 1");
        }
        assertThat(runs).hasValue(2);
        assertThat(events).containsExactly(IdempotenceEvent.CLAIMED, IdempotenceEvent.FENCED);
    }
}
