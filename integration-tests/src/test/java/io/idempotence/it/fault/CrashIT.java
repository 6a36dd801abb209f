package io.idempotence.it.fault;

import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.text;
import static io.idempotence.server.IdempotencePolicy.Completion.AFTER_RESPONSE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.OnAbandoned;
import io.idempotence.it.container.Http;
import io.idempotence.server.redis.EmbeddedRedis;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.args.ClientPauseMode;

/** The provider's process is killed in the middle of a payment, and the call is retried at another instance (promise P6). */
@Tag("all")
class CrashIT {
    @TempDir
    private Path directory;

    private final String id = UUID.randomUUID().toString();
    private EmbeddedRedis redis;
    private Path ledger;

    @BeforeEach
    void start() throws IOException {
        redis = EmbeddedRedis.start();
        ledger = Files.createFile(directory.resolve("ledger"));
    }

    @AfterEach
    void stop() {
        redis.close();
    }

    @ParameterizedTest
    @ValueSource(strings = {"before", "after"})
    void killedAroundThePaymentTheRetryRunsAgainWhereTheOperationAllowsIt(String when) throws Exception {
        try (ProviderProcess other = ProviderProcess.start(redis.address(), ledger, OnAbandoned.RE_EXECUTE)) {
            killWhile(when, OnAbandoned.RE_EXECUTE);
            HttpResponse<byte[]> response = other.payWhenNotInProgress(id);
            assertThat(response.statusCode()).isEqualTo(201);
            assertThat(text(response)).isEqualTo("paid, taken over");
        }
        assertThat(Files.readAllLines(ledger)).hasSize(1);
    }

    @Test
    void killedAfterTheResponseTheRetryGetsItAgain() throws Exception {
        try (ProviderProcess other = ProviderProcess.start(redis.address(), ledger, OnAbandoned.REFUSE)) {
            try (ProviderProcess first = ProviderProcess.start(redis.address(), ledger, OnAbandoned.REFUSE)) {
                assertThat(first.pay(id).statusCode()).isEqualTo(201);
                first.kill();
            }
            HttpResponse<byte[]> response = other.pay(id);
            assertThat(Http.replayed(response)).isTrue();
            assertThat(text(response)).isEqualTo("paid");
        }
        assertThat(Files.readAllLines(ledger)).hasSize(1);
    }

    /** The record waits for Redis when its process dies, and its caller has had the response for long. */
    @Test
    void killedBetweenResponseAndRecordTheOutcomeIsUnknownAndNothingRunsAgain() throws Exception {
        try (ProviderProcess other = ProviderProcess.start(redis.address(), ledger, OnAbandoned.REFUSE);
                Jedis operator = redis.jedis()) {
            long clients = operator.clientList().lines().count();
            try (ProviderProcess first =
                    ProviderProcess.start(redis.address(), ledger, OnAbandoned.REFUSE, AFTER_RESPONSE)) {
                CompletableFuture<HttpResponse<byte[]>> response = first.payAndHold(id, "after");
                operator.clientPause(Duration.ofMinutes(1).toMillis(), ClientPauseMode.WRITE);
                first.resume();
                assertThat(text(response.get(60, TimeUnit.SECONDS))).isEqualTo("paid");
                first.kill();
            }
            await().until(() -> operator.clientList().lines().count() <= clients);
            operator.clientUnpause();
            assertThat(refusal(other.payWhenNotInProgress(id))).isEqualTo("outcome-unknown");
        }
        assertThat(Files.readAllLines(ledger)).hasSize(1);
    }

    /** SIGSTOP: neither the handler nor its renewals go on, so another instance takes over. */
    @Test
    void stalledPastItsLeaseTheLateOwnerWritesNothingAndItsCallerGetsTheOthersResponse() throws Exception {
        try (ProviderProcess other = ProviderProcess.start(redis.address(), ledger, OnAbandoned.RE_EXECUTE);
                ProviderProcess late = ProviderProcess.start(redis.address(), ledger, OnAbandoned.RE_EXECUTE)) {
            CompletableFuture<HttpResponse<byte[]>> first = late.payAndHold(id, "after-first");
            late.pause();

            HttpResponse<byte[]> response = other.payWhenNotInProgress(id);
            assertThat(text(response)).isEqualTo("paid, taken over");
            late.resume();

            assertThat(text(first.get(60, TimeUnit.SECONDS))).isEqualTo("paid, taken over");
            assertThat(Http.replayed(first.get())).isTrue();
            assertThat(text(late.pay(id))).isEqualTo("paid, taken over");
        }
        assertThat(Files.readAllLines(ledger)).hasSize(1);
    }

    private void killWhile(String when, OnAbandoned onAbandoned) throws Exception {
        try (ProviderProcess first = ProviderProcess.start(redis.address(), ledger, onAbandoned)) {
            first.payAndHold(id, when);
            first.kill();
        }
    }
}
