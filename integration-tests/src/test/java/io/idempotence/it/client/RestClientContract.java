package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.any;
import static com.github.tomakehurst.wiremock.client.WireMock.urlEqualTo;
import static io.idempotence.client.IdempotenceClientEvent.Result.REPLAYED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import feign.BaseBuilder;
import feign.Feign;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceClientEvent.Result;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.it.client.ClientUnderTest.End;
import io.idempotence.it.wire.RawServer;
import io.idempotence.spring.client.IdempotentRestClient;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.web.client.ResourceAccessException;
import org.springframework.web.client.RestClient;

/** {@link ClientContract} over Spring's {@code RestClient}. Subclasses choose the request factory. */
abstract class RestClientContract extends ClientContract {
    abstract ClientHttpRequestFactory factory(Duration connect, Duration read);

    @Override
    BaseBuilder<?, ?> builder() {
        return Feign.builder();
    }

    @Override
    ClientUnderTest client(IdempotenceClientConfig config, String url, Duration connect, Duration read) {
        RestClient client = restClient(config, connect, read);
        return body -> end(client, url, body);
    }

    private RestClient restClient(IdempotenceClientConfig config, Duration connect, Duration read) {
        return IdempotentRestClient.install(RestClient.builder(), config)
                .requestFactory(factory(connect, read))
                .defaultRequest(request -> request.attribute(IdempotentRestClient.CLIENT, "orders"))
                .build();
    }

    /** It became a GET and counted as executed. Of HTTP clients themselves, only a POST becomes one after a 301 or 302. */
    @ParameterizedTest
    @CsvSource({"301, PATCH", "302, PATCH", "303, GET", "307, PATCH"})
    void patchBecomesAGetOnlyAfterA303(int status, String second) {
        if (follows() == Follows.NOT) {
            return;
        }
        provider.stubFor(any(urlEqualTo("/orders/7"))
                .atPriority(5)
                .willReturn(status(status).withHeader("Location", "/orders/7/")));
        restClient(fast().build(), TWENTY_SECONDS, TWENTY_SECONDS)
                .patch()
                .uri("http://127.0.0.1:" + provider.port() + "/orders/7")
                .body("x")
                .retrieve()
                .toBodilessEntity();
        assertThat(received().stream().map(request -> request.getMethod().getName()))
                .containsExactly("PATCH", second);
        assertThat(bodies()).containsExactly("x", second.equals("GET") ? "" : "x");
        assertThat(received().stream().map(request -> header(request, "Idempotency-Key")))
                .satisfiesExactly(
                        first -> assertThat(first).isNotEmpty(),
                        next -> assertThat(next.isEmpty()).isEqualTo(second.equals("GET")));
    }

    /** The operation may have responded with it. What the next address says about the ID is nothing about that. */
    @ParameterizedTest
    @CsvSource({"/orders/7/view, 404, ''", "/orders/7/view, 422, key-reused", "/orders/7, 200, ''"})
    void patchThatWasRedirectedIsUnknownUnlessItSucceeds(String location, int status, String refusal) {
        if (follows() == Follows.NOT) {
            return;
        }
        provider.stubFor(any(urlEqualTo("/orders/7/view"))
                .atPriority(5)
                .willReturn(
                        refusal.isEmpty()
                                ? status(status)
                                : status(status).withHeader("Idempotency-Refusal", refusal)));
        provider.stubFor(any(urlEqualTo("/orders/7"))
                .atPriority(5)
                .willReturn(status(302).withHeader("Location", location)));
        RestClient.RequestHeadersSpec<?> patch = restClient(fast().build(), TWENTY_SECONDS, TWENTY_SECONDS)
                .patch()
                .uri("http://127.0.0.1:" + provider.port() + "/orders/7")
                .body("x");
        assertThatThrownBy(() -> patch.retrieve().toBodilessEntity()).isInstanceOf(OutcomeUnknown.class);
    }

    /** The request was executed: the redirect says so. It ended as the redirect, and as failed. */
    @Test
    void redirectThatIsNotFollowedBecauseOfAnInterruptLeavesTheOutcomeUnknown() {
        if (follows() == Follows.NOT) {
            return;
        }
        Thread caller = Thread.currentThread();
        try (RawServer server = RawServer.start((request, socket) -> {
            caller.interrupt();
            write(socket, "HTTP/1.1 303 See Other\r\nLocation: /orders/7\r\nContent-Length: 0\r\n\r\n");
        })) {
            assertUnknown(client(fast(), server.url()).order());
        }
        assertThat(Thread.interrupted()).isTrue();
        assertEnd(UNKNOWN, 1);
    }

    private static End end(RestClient client, String url, String body) {
        try {
            return client.post()
                    .uri(url + "/orders")
                    .body(body)
                    .exchange((request, response) -> new End(
                            response.getStatusCode().value(),
                            new String(response.getBody().readAllBytes(), StandardCharsets.UTF_8),
                            null));
        } catch (RuntimeException e) {
            return End.thrown(e);
        }
    }

    @Override
    Class<? extends Throwable> failureToSend() {
        return ResourceAccessException.class;
    }

    @Override
    Class<?> logger() {
        return IdempotentRestClient.class;
    }

    @Override
    Result endOfAStoredError() {
        return REPLAYED;
    }
}
