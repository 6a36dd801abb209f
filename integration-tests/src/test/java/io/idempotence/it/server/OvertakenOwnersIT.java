package io.idempotence.it.server;

import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.container.Http.request;
import static io.idempotence.it.container.Http.sendAsync;
import static io.idempotence.it.container.Http.text;
import static io.idempotence.it.wire.Latches.awaitLatch;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.ServletServer.Handler;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.IdempotentExecution;
import io.idempotence.server.jdbc.EmbeddedPostgreSql;
import io.idempotence.server.jdbc.ExecutionOvertakenException;
import io.idempotence.server.jdbc.JdbcIdempotenceStorage;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.servlet.RequestSettings;
import io.idempotence.server.storage.FaultyStorage;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.http.HttpServletRequest;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/**
 * Owners that were overtaken, in in-transaction mode (T14). Their business transaction must not take effect, and their callers get the
 * other owner's response or a refusal.
 */
class OvertakenOwnersIT extends FilterTestBase {
    private static EmbeddedPostgres postgres;
    private static JdbcIdempotenceStorage storage;

    private final CountDownLatch firstStarted = new CountDownLatch(1);
    private final CountDownLatch firstMayEnd = new CountDownLatch(1);
    private final CountDownLatch secondStarted = new CountDownLatch(1);
    private final CountDownLatch secondMayEnd = new CountDownLatch(1);

    @BeforeAll
    static void startDatabase() throws IOException {
        postgres = EmbeddedPostgreSql.start();
        storage = JdbcIdempotenceStorage.builder(postgres.getPostgresDatabase())
                .createIfMissing()
                .inTransaction()
                .statementTimeout(Duration.ofSeconds(20))
                .build();
    }

    @AfterAll
    static void stopDatabase() throws IOException {
        storage.close();
        postgres.close();
    }

    @BeforeEach
    void shortLease() {
        policy = IdempotencePolicy.builder().lease(Duration.ofMillis(300)).build();
    }

    private static void pay(HttpServletRequest request) throws IOException {
        IdempotentExecution execution = IdempotenceFilter.execution(request).orElseThrow();
        try (Connection business = postgres.getPostgresDatabase().getConnection()) {
            business.setAutoCommit(false);
            storage.markApplied(business, execution);
            business.commit();
        } catch (SQLException e) {
            throw new IOException(e);
        }
    }

    private ServletServer serveOvertaken(Handler first) {
        Idempotence idempotence = idempotence(new FaultyStorage(storage).withoutRenewals());
        return start(
                (request, response) -> {
                    if (runs.get() == 1) {
                        firstStarted.countDown();
                        awaitLatch(firstMayEnd);
                        first.handle(request, response);
                    } else {
                        secondStarted.countDown();
                        awaitLatch(secondMayEnd);
                        pay(request);
                        respond(response, 201, "paid by the second");
                    }
                },
                context -> {
                    RequestSettings.choose(context, this::chosen);
                    IdempotenceFilter.install(context, idempotence);
                });
    }

    /** A duplicate that the machine delays must not overtake the second owner as well. */
    private RequestSettings chosen(HttpServletRequest request, RequestSettings settings) {
        return firstStarted.getCount() > 0 ? settings : with(IdempotencePolicy.defaults(), settings);
    }

    private CompletableFuture<HttpResponse<byte[]>> send(ServletServer server) {
        return sendAsync(request("POST", server.uri("/payments"), id, "{\"amount\":5}"));
    }

    private CompletableFuture<HttpResponse<byte[]>> overtake(ServletServer server) {
        CompletableFuture<HttpResponse<byte[]>> second = new CompletableFuture<>();
        await().until(() -> {
            send(server).thenAccept(response -> {
                if (!"in-progress".equals(refusal(response))) {
                    second.complete(response);
                }
            });
            return secondStarted.await(50, java.util.concurrent.TimeUnit.MILLISECONDS);
        });
        return second;
    }

    @Test
    @DisplayName("T14: an overtaken owner's caller gets the response of the one that took effect")
    void theCallerGetsTheResponseOfTheOneThatTookEffect() {
        ServletServer server = serveOvertaken((request, response) -> pay(request));
        CompletableFuture<HttpResponse<byte[]>> late = sendUntil(firstStarted, () -> send(server));
        CompletableFuture<HttpResponse<byte[]>> second = overtake(server);
        secondMayEnd.countDown();
        assertThat(second.join().statusCode()).isEqualTo(201);

        firstMayEnd.countDown();

        assertThat(late.join().statusCode()).isEqualTo(201);
        assertThat(text(late.join())).isEqualTo("paid by the second");
        assertThat(replayed(late.join())).isTrue();
    }

    @Test
    @DisplayName(
            "T14: while the other one runs, an overtaken owner's caller is refused as in progress, whatever its handler responds")
    void theCallerIsRefusedAsInProgressWhileTheOtherOneRuns() {
        assertInProgress((request, response) -> pay(request));
    }

    @Test
    void itIsRefusedIfTheHandlerMakesAResponseOfTheException() {
        assertInProgress((request, response) -> {
            try {
                pay(request);
            } catch (ExecutionOvertakenException e) {
                response.sendError(500, "an exception mapper's");
            }
        });
    }

    @Test
    void itIsRefusedIfTheHandlerIsAsynchronous() {
        assertInProgress((request, response) -> {
            AsyncContext async = request.startAsync();
            executor.execute(() -> {
                try {
                    pay(request);
                } catch (ExecutionOvertakenException | IOException e) {
                    respond(async, 500, "an exception mapper's");
                }
                async.complete();
            });
        });
    }

    private void assertInProgress(Handler first) {
        ServletServer server = serveOvertaken(first);
        CompletableFuture<HttpResponse<byte[]>> late = sendUntil(firstStarted, () -> send(server));
        CompletableFuture<HttpResponse<byte[]>> second = overtake(server);

        firstMayEnd.countDown();

        assertThat(late.join().statusCode()).isEqualTo(409);
        assertThat(refusal(late.join())).isEqualTo("in-progress");
        assertThat(late.join().headers().firstValue("Retry-After-Ms")).isPresent();
        assertThat(text(late.join())).doesNotContain("mapper");
        secondMayEnd.countDown();
        assertThat(text(second.join())).isEqualTo("paid by the second");
        assertThat(replayed(call(server))).isTrue();
    }
}
