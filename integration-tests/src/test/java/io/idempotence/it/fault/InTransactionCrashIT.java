package io.idempotence.it.fault;

import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.container.Http.text;
import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.jdbc.EmbeddedPostgreSql;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The payment and its mark are committed together: whenever a provider dies or stalls, there is one payment in the end. */
@Tag("all")
class InTransactionCrashIT {
    private static EmbeddedPostgres postgres;
    private static ProviderProcess other;

    private final String id = UUID.randomUUID().toString();

    @BeforeAll
    static void start() throws IOException, SQLException {
        postgres = EmbeddedPostgreSql.start();
        try (Connection connection = postgres.getPostgresDatabase().getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE payment (id VARCHAR(255) NOT NULL)");
        }
        other = provider();
    }

    @AfterAll
    static void stop() throws IOException, InterruptedException {
        other.close();
        postgres.close();
    }

    @ParameterizedTest
    @ValueSource(strings = {"claimed", "paid"})
    void killedBeforeTheCommitTheRetryPays(String step) throws Exception {
        killAt(step);

        HttpResponse<byte[]> response = other.payWhenNotInProgress(id);
        assertThat(response.statusCode()).isEqualTo(201);
        assertThat(replayed(response)).isFalse();
        assertThat(replayed(other.pay(id))).isTrue();
        assertThat(payments()).isEqualTo(1);
    }

    @Test
    void killedAfterTheCommitTheRetryIsRefusedAsDone() throws Exception {
        killAt("committed");
        assertThat(payments()).isEqualTo(1);

        HttpResponse<byte[]> response = other.payWhenNotInProgress(id);
        assertThat(response.statusCode()).isEqualTo(409);
        assertThat(refusal(response)).isEqualTo("result-unavailable");
        assertThat(text(response)).contains("\"retryable\":false", "\"safeNewId\":false");
        assertThat(payments()).isEqualTo(1);
    }

    @Test
    void stalledPastItsLeaseTheLateOwnerPaysNothingAndItsRetryGetsTheResponse() throws Exception {
        try (ProviderProcess late = provider()) {
            CompletableFuture<HttpResponse<byte[]>> first = late.payAndHold(id, "claimed");
            late.pause();

            HttpResponse<byte[]> response = other.payWhenNotInProgress(id);
            assertThat(response.statusCode()).isEqualTo(201);
            late.resume();

            assertThat(first.get().statusCode()).isEqualTo(201);
            assertThat(replayed(first.get())).isTrue();
            assertThat(replayed(late.pay(id))).isTrue();
        }
        assertThat(payments()).isEqualTo(1);
    }

    private static ProviderProcess provider() throws IOException {
        return ProviderProcess.start(TransactionalProvider.class, postgres.getJdbcUrl("postgres", "postgres"));
    }

    private void killAt(String step) throws Exception {
        try (ProviderProcess first = provider()) {
            first.payAndHold(id, step);
            first.kill();
        }
    }

    private long payments() throws SQLException {
        try (Connection connection = postgres.getPostgresDatabase().getConnection();
                Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery("SELECT COUNT(*) FROM payment WHERE id = '" + id + "'")) {
            rows.next();
            return rows.getLong(1);
        }
    }
}
