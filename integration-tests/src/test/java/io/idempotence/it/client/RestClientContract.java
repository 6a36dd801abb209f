package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.aResponse;
import static com.github.tomakehurst.wiremock.client.WireMock.post;
import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.REPLAYED;
import static org.assertj.core.api.Assertions.assertThat;

import com.github.tomakehurst.wiremock.verification.LoggedRequest;
import feign.BaseBuilder;
import feign.Feign;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceClientEvent.Result;
import io.idempotence.it.client.ClientUnderTest.End;
import io.idempotence.spring.client.IdempotentRestClient;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.web.client.ResourceAccessException;
import org.springframework.web.client.RestClient;

/** {@link ClientContract} over Spring's {@code RestClient}. Subclasses name the request factory. */
abstract class RestClientContract extends ClientContract {
    abstract ClientHttpRequestFactory factory(Duration connect, Duration read);

    @Override
    BaseBuilder<?, ?> builder() {
        return Feign.builder();
    }

    @Override
    ClientUnderTest client(IdempotenceClientConfig config, String url, Duration connect, Duration read) {
        RestClient client = IdempotentRestClient.install(RestClient.builder(), config)
                .requestFactory(factory(connect, read))
                .defaultRequest(request -> request.attribute(IdempotentRestClient.CLIENT, "orders"))
                .build();
        return () -> end(client, url);
    }

    private static End end(RestClient client, String url) {
        try {
            return client.post()
                    .uri(url + "/orders")
                    .body("x")
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
    Result endOfAStoredError() {
        return REPLAYED;
    }
    /** {@link java.net.URI} dropped the last segment of the path, and the POST went to another address. */
    @ParameterizedTest
    @CsvSource({
        "?step=2, /v2/orders?step=2",
        "7, /v2/7",
        "./7?x, /v2/7?x",
        "../orders, /orders",
        "../../orders, /orders",
        "//127.0.0.1:PORT/v3, /v3",
    })
    void redirectIsResolvedAsOfToday(String location, String next) {
        provider.stubFor(post("/v2/orders")
                .willReturn(aResponse()
                        .withStatus(307)
                        .withHeader("Location", location.replace("PORT", "" + provider.port()))));
        End end = client(fast(), "http://127.0.0.1:" + provider.port() + "/v2").order();
        if (followsRedirects()) {
            assertOk(end);
            assertThat(received()).extracting(LoggedRequest::getUrl).containsExactly("/v2/orders", next);
            assertOneId();
        } else {
            assertStatus(end, 307);
        }
    }

    /** It was sent 21 times. An empty address is the one that was asked. */
    @ParameterizedTest
    @ValueSource(strings = {"", "/orders", "orders#top"})
    void redirectToTheSameRequestIsTheResponse(String location) {
        alwaysGet(aResponse().withStatus(307).withHeader("Location", location));
        assertStatus(client().order(), 307);
        assertThat(received()).hasSize(1);
        assertEnd(FAILED, 1);
    }

    /** The JDK's HttpURLConnection has streamed the body, and reports the redirect. */
    boolean followsRedirects() {
        return true;
    }
}
