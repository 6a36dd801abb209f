package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.aResponse;
import static com.github.tomakehurst.wiremock.client.WireMock.post;
import static io.idempotence.client.IdempotenceClientEvent.Result.SUCCEEDED;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.it.client.ClientUnderTest.End;
import io.idempotence.it.wire.RawServer;
import io.idempotence.spring.client.IdempotentRestClient;
import io.idempotence.spring.client.RestOutcomeUnknownException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.net.ConnectException;
import java.net.InetAddress;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hc.client5.http.classic.HttpClient;
import org.apache.hc.client5.http.config.ConnectionConfig;
import org.apache.hc.client5.http.impl.InMemoryDnsResolver;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManagerBuilder;
import org.apache.hc.core5.http.protocol.BasicHttpContext;
import org.apache.hc.core5.util.Timeout;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.http.ResponseEntity;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.http.client.HttpComponentsClientHttpRequestFactory;
import org.springframework.web.client.RestClient;

/** {@code RestClient} over Apache HttpClient, without HttpClient's own retries. */
class RestClientOverHttpComponentsIT extends RestClientContract {
    @Override
    ClientHttpRequestFactory factory(Duration connect, Duration read) {
        HttpComponentsClientHttpRequestFactory factory = new HttpComponentsClientHttpRequestFactory(HttpClients.custom()
                .disableAutomaticRetries()
                .setConnectionManager(PoolingHttpClientConnectionManagerBuilder.create()
                        .setDefaultConnectionConfig(ConnectionConfig.custom()
                                .setConnectTimeout(Timeout.of(connect))
                                .build())
                        .build())
                .build());
        factory.setReadTimeout(read);
        return factory;
    }

    /** As services of a container platform have. To a {@link java.net.URI}, such a host is none. */
    @ParameterizedTest
    @CsvSource({"/orders/1, ok", "http://order_service:PORT/orders/1, ok", "http://elsewhere.example/orders/1, ''"})
    void redirectOfAHostWithAnUnderscoreIsFollowedAtThatHostOnly(String location, String body) {
        provider.stubFor(post("/orders")
                .willReturn(aResponse()
                        .withStatus(303)
                        .withHeader("Location", location.replace("PORT", "" + provider.port()))));
        RestClient client = IdempotentRestClient.install(RestClient.builder(), fast().build())
                .requestFactory(new HttpComponentsClientHttpRequestFactory(resolving("order_service")))
                .build();
        ResponseEntity<String> response = client.post()
                .uri("http://order_service:" + provider.port() + "/orders")
                .body("tea")
                .retrieve()
                .toEntity(String.class);
        assertThat(Objects.requireNonNullElse(response.getBody(), "")).isEqualTo(body);
        assertThat(response.getStatusCode().value()).isEqualTo(body.isEmpty() ? 303 : 200);
    }

    /** Boot's {@code dont-follow} is such a client. */
    @Test
    void clientThatHandlesNoRedirectsFollowsNone() {
        provider.stubFor(post("/orders").willReturn(aResponse().withStatus(303).withHeader("Location", "/orders/1")));
        ResponseEntity<String> response = IdempotentRestClient.install(RestClient.builder(), fast().build())
                .requestFactory(new HttpComponentsClientHttpRequestFactory(HttpClients.custom()
                        .disableAutomaticRetries()
                        .disableRedirectHandling()
                        .build()))
                .build()
                .post()
                .uri("http://127.0.0.1:" + provider.port() + "/orders")
                .retrieve()
                .toEntity(String.class);
        assertThat(response.getStatusCode().value()).isEqualTo(303);
    }

    /** HttpClient took the ID to another origin. */
    @Test
    void contextOfAnotherKindIsNoWayToAnotherOrigin() {
        try (RawServer elsewhere = RawServer.start((request, socket) -> write(socket, WHOLE))) {
            alwaysGet(status(307).withHeader("Location", elsewhere.url() + "/orders"));
            HttpComponentsClientHttpRequestFactory factory = new HttpComponentsClientHttpRequestFactory(
                    HttpClients.custom().disableAutomaticRetries().build());
            factory.setHttpContextFactory((method, uri) -> new BasicHttpContext());
            ResponseEntity<String> response = IdempotentRestClient.install(RestClient.builder(), fast().build())
                    .requestFactory(factory)
                    .build()
                    .post()
                    .uri("http://127.0.0.1:" + provider.port() + "/orders")
                    .body("tea")
                    .retrieve()
                    .toEntity(String.class);
            assertThat(response.getStatusCode().value()).isEqualTo(307);
        }
    }

    /** It was the ID of the first call, which is of another service. */
    @Test
    void callOfAnotherHostWithAnUnderscoreIsAnotherCallInAScope() {
        RestClient client = IdempotentRestClient.install(RestClient.builder(), fast().build())
                .requestFactory(
                        new HttpComponentsClientHttpRequestFactory(resolving("order_service", "payment_service")))
                .build();
        assertThatThrownBy(() -> IdempotenceScope.with(IdempotenceId.of("job-1"), () -> {
                    for (String host : List.of("order_service", "payment_service")) {
                        client.post()
                                .uri("http://" + host + ":" + provider.port() + "/orders")
                                .retrieve()
                                .toBodilessEntity();
                    }
                }))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("payment_service");
        assertThat(received()).hasSize(1);
    }

    /** Boot sets its read timeout there. */
    @Test
    void serverIsNotAskedToHoldADuplicateForLongerThanTheConnectionWaits() {
        CloseableHttpClient waiting = HttpClients.custom()
                .disableAutomaticRetries()
                .setConnectionManager(PoolingHttpClientConnectionManagerBuilder.create()
                        .setDefaultConnectionConfig(ConnectionConfig.custom()
                                .setSocketTimeout(Timeout.ofSeconds(3))
                                .build())
                        .build())
                .build();
        IdempotentRestClient.install(RestClient.builder(), fast().build())
                .requestFactory(new HttpComponentsClientHttpRequestFactory(waiting))
                .build()
                .post()
                .uri("http://127.0.0.1:" + provider.port() + "/orders")
                .retrieve()
                .toBodilessEntity();
        // On a busy machine a response may be late, and is asked for again.
        assertThat(received()).extracting(request -> header(request, "Prefer")).containsOnly("wait=2");
    }

    /** HttpClient takes the headers away that frame it. */
    @Test
    void emptyBodyThatWasCompressedIsTheResult() {
        try (RawServer server =
                RawServer.start((request, socket) -> write(socket, InterruptedResponsesIT.compressed("")))) {
            assertThat(client(fast(), server.url()).order()).isEqualTo(new End(201, "", null));
        }
        assertEnd(SUCCEEDED, 1);
    }

    @Test
    void emptyBodyWhoseCompressedDataIsMissingIsAskedForAgain() {
        try (RawServer server = RawServer.start((request, socket) -> write(
                socket,
                request.header("Idempotency-Attempt").equals("1")
                        ? "HTTP/1.1 201 Created\r\nContent-Encoding: gzip\r\n\r\n"
                        : WHOLE))) {
            assertText(client(fast(), server.url()).order(), "whole");
        }
        assertEnd(SUCCEEDED, 2);
    }

    /** HttpClient sends a POST again after a 503. The call ended as if nothing had been sent. */
    @Test
    void failureOfAHandlerThatHttpClientRepeatsIsNotForgotten() {
        assertUnknown(
                HttpClients.createDefault(),
                (request, socket) -> write(
                        socket,
                        "HTTP/1.1 503 Unavailable\r\nRetry-After: 0\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"));
    }

    @Test
    void refusedConnectionOfAWrapperLeavesDoubt() {
        CloseableHttpClient plain =
                HttpClients.custom().disableAutomaticRetries().build();
        HttpClient failingOver = (HttpClient) Proxy.newProxyInstance(
                HttpClient.class.getClassLoader(), new Class<?>[] {HttpClient.class}, (proxy, method, arguments) -> {
                    try {
                        return method.invoke(plain, arguments);
                    } catch (InvocationTargetException e) {
                        throw new ConnectException("at the other host");
                    }
                });
        assertUnknown(failingOver, (request, socket) -> {});
    }

    /** The server responds once, and refuses connections from then on. */
    private void assertUnknown(HttpClient httpClient, RawServer.Handler once) {
        AtomicReference<RawServer> self = new AtomicReference<>();
        try (RawServer server = RawServer.start((request, socket) -> {
            self.get().stopListening();
            once.handle(request, socket);
        })) {
            self.set(server);
            RestClient client = IdempotentRestClient.install(
                            RestClient.builder(), fast().maxAttempts(1).build())
                    .requestFactory(new HttpComponentsClientHttpRequestFactory(httpClient))
                    .build();
            assertThatThrownBy(() -> client.post()
                            .uri(server.url() + "/orders")
                            .body("tea")
                            .retrieve()
                            .toBodilessEntity())
                    .isInstanceOf(RestOutcomeUnknownException.class);
        }
    }

    /** A client that finds these hosts here. */
    private static CloseableHttpClient resolving(String... hosts) {
        InMemoryDnsResolver addresses = new InMemoryDnsResolver();
        for (String host : hosts) {
            addresses.add(host, InetAddress.getLoopbackAddress());
        }
        return HttpClients.custom()
                .disableAutomaticRetries()
                .setConnectionManager(PoolingHttpClientConnectionManagerBuilder.create()
                        .setDnsResolver(addresses)
                        .build())
                .build();
    }
}
