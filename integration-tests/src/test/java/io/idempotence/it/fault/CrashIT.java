package io.idempotence.it.fault;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.request;
import static io.idempotence.it.container.Http.text;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.it.container.Http;
import io.idempotence.server.IdempotencePolicy.OnAbandoned;
import io.idempotence.server.redis.EmbeddedRedis;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The provider's process is killed in the middle of a payment, and the call is tried again at another instance (promise P6). */
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
    void killedAroundThePaymentTheRetryIsToldThatTheOutcomeIsUnknown(String when) throws Exception {
        try (ProviderProcess other = ProviderProcess.start(redis.address(), ledger, OnAbandoned.REFUSE)) {
            killWhile(when, OnAbandoned.REFUSE);
            HttpResponse<byte[]> answer = retryUntilNotInProgress(other);
            assertThat(answer.statusCode()).isEqualTo(409);
            assertThat(refusal(answer)).isEqualTo("outcome-unknown");
            assertThat(text(answer)).contains("\"retryable\":false", "\"safeNewId\":false");
        }
        assertThat(Files.readAllLines(ledger)).hasSize(when.equals("before") ? 0 : 1);
    }

    @ParameterizedTest
    @ValueSource(strings = {"before", "after"})
    void killedAroundThePaymentTheRetryRunsAgainWhereTheOperationAllowsIt(String when) throws Exception {
        try (ProviderProcess other = ProviderProcess.start(redis.address(), ledger, OnAbandoned.RE_EXECUTE)) {
            killWhile(when, OnAbandoned.RE_EXECUTE);
            HttpResponse<byte[]> answer = retryUntilNotInProgress(other);
            assertThat(answer.statusCode()).isEqualTo(201);
            assertThat(text(answer)).isEqualTo("paid, taken over");
        }
        assertThat(Files.readAllLines(ledger)).hasSize(1);
    }

    @Test
    void killedAfterTheAnswerTheRetryGetsItAgain() throws Exception {
        try (ProviderProcess other = ProviderProcess.start(redis.address(), ledger, OnAbandoned.REFUSE)) {
            try (ProviderProcess first = ProviderProcess.start(redis.address(), ledger, OnAbandoned.REFUSE)) {
                assertThat(retry(first).statusCode()).isEqualTo(201);
                first.kill();
            }
            HttpResponse<byte[]> answer = retry(other);
            assertThat(Http.replayed(answer)).isTrue();
            assertThat(text(answer)).isEqualTo("paid");
        }
        assertThat(Files.readAllLines(ledger)).hasSize(1);
    }

    /** SIGSTOP: neither the handler nor its renewals go on, so another instance takes over. */
    @Test
    void stalledPastItsLeaseTheLateOwnerWritesNothingAndItsCallerGetsTheOthersAnswer() throws Exception {
        try (ProviderProcess other = ProviderProcess.start(redis.address(), ledger, OnAbandoned.RE_EXECUTE);
                ProviderProcess late = ProviderProcess.start(redis.address(), ledger, OnAbandoned.RE_EXECUTE)) {
            CompletableFuture<HttpResponse<byte[]>> first = Http.sendAsync(
                    request("POST", late.uri("/payments"), id, "{\"amount\":5}", "X-Hold", "after-first"));
            late.awaitHold();
            late.pause();

            HttpResponse<byte[]> answer = retryUntilNotInProgress(other);
            assertThat(text(answer)).isEqualTo("paid, taken over");
            late.resume();

            assertThat(text(first.get(30, TimeUnit.SECONDS))).isEqualTo("paid, taken over");
            assertThat(Http.replayed(first.get())).isTrue();
            assertThat(text(retry(late))).isEqualTo("paid, taken over");
        }
        assertThat(Files.readAllLines(ledger)).hasSize(1);
    }

    private void killWhile(String when, OnAbandoned onAbandoned) throws Exception {
        try (ProviderProcess first = ProviderProcess.start(redis.address(), ledger, onAbandoned)) {
            Http.sendAsync(request("POST", first.uri("/payments"), id, "{\"amount\":5}", "X-Hold", when));
            first.awaitHold();
            first.kill();
        }
    }

    private HttpResponse<byte[]> retry(ProviderProcess provider) {
        return post(provider.uri("/payments"), id, "{\"amount\":5}");
    }

    private HttpResponse<byte[]> retryUntilNotInProgress(ProviderProcess provider) {
        AtomicReference<HttpResponse<byte[]>> answer = new AtomicReference<>();
        await().atMost(Duration.ofSeconds(30)).until(() -> {
            answer.set(retry(provider));
            return !"in-progress".equals(refusal(answer.get()));
        });
        return answer.get();
    }
}
