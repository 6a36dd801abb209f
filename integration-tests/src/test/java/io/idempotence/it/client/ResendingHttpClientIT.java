package io.idempotence.it.client;

import static io.idempotence.it.client.InterruptedResponsesIT.write;
import static io.idempotence.it.client.ResendingFeignClientIT.endAfterALostResponse;
import static io.idempotence.it.client.ResponseContract.WHOLE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import feign.Feign;
import feign.hc5.ApacheHttp5Client;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.it.wire.RawServer;
import io.idempotence.spring.client.IdempotentRestClient;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hc.client5.http.classic.ExecChain;
import org.apache.hc.client5.http.impl.DefaultHttpRequestRetryStrategy;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManager;
import org.apache.hc.core5.http.ClassicHttpRequest;
import org.apache.hc.core5.http.ClassicHttpResponse;
import org.apache.hc.core5.http.HttpException;
import org.apache.hc.core5.http.io.support.ClassicRequestBuilder;
import org.apache.hc.core5.util.TimeValue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.http.client.HttpComponentsClientHttpRequestFactory;
import org.springframework.web.client.RestClient;

/**
 * Apache HttpClient that sends a request again: its own retries, or an interceptor behind the step that connects. An interceptor that does
 * so has no connection any more, and gets the exception of a request that was aborted before it was sent. Such calls once ended as not
 * sent.
 */
class ResendingHttpClientIT {
    private static final byte[] UNAVAILABLE =
            "HTTP/1.1 503 Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
                    .getBytes(StandardCharsets.ISO_8859_1);

    /** For calls that last until their deadline. */
    private static final Duration SHORT = Duration.ofSeconds(3);

    private static final Duration LONG = Duration.ofMinutes(2);

    private final CloseableHttpClient http = HttpClients.custom()
            .disableAutomaticRetries()
            .addExecInterceptorLast("again", ResendingHttpClientIT::send)
            .build();

    /** The first call loads classes, which may take longer than a short deadline. */
    @BeforeAll
    static void warmUp() throws IOException {
        try (CloseableHttpClient client = HttpClients.createDefault();
                RawServer server = RawServer.start((request, socket) -> write(socket, WHOLE))) {
            assertThat(orders(client, server, LONG).create("x")).isEqualTo("whole");
        }
    }

    @AfterEach
    void closeHttp() throws IOException {
        http.close();
    }

    private static ClassicHttpResponse send(ClassicHttpRequest request, ExecChain.Scope scope, ExecChain chain)
            throws IOException, HttpException {
        try {
            return chain.proceed(request, scope);
        } catch (IOException e) {
            return chain.proceed(
                    ClassicRequestBuilder.copy(scope.originalRequest).build(), scope);
        }
    }

    @Test
    void executedCallThatIsSentAgainIsNotReportedAsNotSent() {
        assertThat(endAfterALostResponse(
                        Feign.builder().client(new ApacheHttp5Client(http)), orders -> orders.create("x")))
                .isInstanceOf(OutcomeUnknown.class);
    }

    @Test
    void executedCallThatIsSentAgainAfterItsDeadlineIsNotReportedAsNotSent() {
        AtomicInteger executed = new AtomicInteger();
        try (RawServer server = RawServer.start((request, socket) -> {
            executed.incrementAndGet();
            await().forever().until(() -> socket.getInputStream().read() < 0);
        })) {
            assertUnknown(http, server, SHORT);
        }
        assertThat(executed).hasValue(1);
    }

    @Test
    void executedCallOfARestClientThatIsSentAgainIsNotReportedAsNotSent() {
        AtomicInteger executed = new AtomicInteger();
        try (RawServer server = RawServer.start((request, socket) -> executed.incrementAndGet())) {
            RestClient orders = IdempotentRestClient.install(
                            RestClient.builder(),
                            IdempotenceClientConfig.builder()
                                    .deadline(LONG)
                                    .maxAttempts(1)
                                    .build())
                    .requestFactory(new HttpComponentsClientHttpRequestFactory(http))
                    .build();
            assertThatThrownBy(() -> orders.post()
                            .uri(server.url() + "/orders")
                            .body("x")
                            .retrieve()
                            .toBodilessEntity())
                    .isInstanceOf(OutcomeUnknown.class);
        }
        assertThat(executed).hasValue(1);
    }

    /** HttpClient sends a POST again after a 503. The second one is aborted when it has its connection. */
    @Test
    void failureOfAHandlerThatHttpClientRepeatsIsNotReportedAsNotSent() throws IOException {
        PoolingHttpClientConnectionManager pool = new PoolingHttpClientConnectionManager();
        AtomicInteger sent = new AtomicInteger();
        try (CloseableHttpClient repeating = HttpClients.custom()
                        .setConnectionManager(pool)
                        .setRetryStrategy(new DefaultHttpRequestRetryStrategy(1, TimeValue.ZERO_MILLISECONDS))
                        .addRequestInterceptorLast((request, entity, context) -> {
                            if (sent.incrementAndGet() == 2) {
                                await().until(() -> pool.getTotalStats().getLeased() == 0);
                            }
                        })
                        .build();
                RawServer server = RawServer.start(
                        (request, socket) -> socket.getOutputStream().write(UNAVAILABLE))) {
            assertUnknown(repeating, server, SHORT);
        }
        assertThat(sent).hasValue(2);
    }

    /** The second one has nobody to connect to. */
    @Test
    void failureOfAHandlerIsNotReportedAsNotSentIfItsRepetitionIsRefused() throws IOException {
        AtomicReference<RawServer> itself = new AtomicReference<>();
        try (CloseableHttpClient repeating = HttpClients.custom()
                        .setRetryStrategy(new DefaultHttpRequestRetryStrategy(1, TimeValue.ZERO_MILLISECONDS))
                        .build();
                RawServer server = RawServer.start((request, socket) -> {
                    itself.get().stopListening();
                    socket.getOutputStream().write(UNAVAILABLE);
                })) {
            itself.set(server);
            assertUnknown(repeating, server, LONG);
        }
    }

    private static Orders orders(CloseableHttpClient client, RawServer server, Duration deadline) {
        IdempotenceClientConfig config = IdempotenceClientConfig.builder()
                .deadline(deadline)
                .maxAttempts(1)
                .build();
        return WireMockTestBase.target(
                WireMockTestBase.install(Feign.builder().client(new ApacheHttp5Client(client)), config), server.url());
    }

    private static void assertUnknown(CloseableHttpClient client, RawServer server, Duration deadline) {
        assertThatThrownBy(() -> orders(client, server, deadline).create("x")).isInstanceOf(OutcomeUnknown.class);
    }
}
