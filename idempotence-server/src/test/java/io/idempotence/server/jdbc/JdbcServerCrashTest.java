package io.idempotence.server.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import io.idempotence.server.ExecutionRefusedException;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.Refusals;
import io.idempotence.server.storage.IdempotenceStorage;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.postgresql.ds.PGSimpleDataSource;

/** A database server is killed while a handler runs, and started again on its data. */
@Tag("all")
class JdbcServerCrashTest {
    private final IdempotenceId id = IdempotenceId.of("order-1");
    private final List<IdempotenceEvent> events = new CopyOnWriteArrayList<>();

    @Test
    @DisplayName("T22: an end that the killed server could not take is recorded when it is back, and replayed")
    void anEndIsRecordedWhenTheServerIsBack() throws Exception {
        // Else the claim itself could be forgotten.
        try (EmbeddedPostgres postgres =
                EmbeddedPostgreSql.start(settings -> settings.setServerConfig("synchronous_commit", "on"))) {
            PostgreSqlProcess server = PostgreSqlProcess.of(postgres);
            try (Idempotence idempotence = Idempotence.builder(storage(postgres))
                    .listener((event, which) -> events.add(event))
                    .build()) {
                assertThat(idempotence.execute(id, () -> {
                            server.kill();
                            return "paid";
                        }))
                        .isEqualTo("paid");
                assertThat(events).containsExactly(IdempotenceEvent.CLAIMED, IdempotenceEvent.STORAGE_ERROR);
                assertThat(Refusals.refusalOf(() -> idempotence.execute(id, () -> "paid twice")))
                        .isEqualTo(Refusal.STORAGE_UNAVAILABLE);

                server.start();
                await().ignoreExceptionsInstanceOf(ExecutionRefusedException.class)
                        .until(() -> idempotence.execute(id, () -> "paid twice").equals("paid"));
            }
            try (Idempotence another = Idempotence.over(storage(postgres))) {
                assertThat(another.execute(id, () -> "paid twice")).isEqualTo("paid");
            }
            assertThat(events).doesNotContain(IdempotenceEvent.FENCED, IdempotenceEvent.LOST);
        }
    }

    private static IdempotenceStorage storage(EmbeddedPostgres postgres) {
        PGSimpleDataSource dataSource = new PGSimpleDataSource();
        dataSource.setUrl(postgres.getJdbcUrl("postgres", "postgres"));
        return Databases.storage(dataSource).createIfMissing().build();
    }
}
