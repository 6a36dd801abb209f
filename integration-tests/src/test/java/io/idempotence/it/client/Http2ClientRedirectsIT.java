package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.post;
import static io.idempotence.client.IdempotenceClientEvent.Result.SUCCEEDED;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import feign.AsyncFeign;
import feign.BaseBuilder;
import feign.Client;
import feign.Feign;
import feign.FeignException;
import feign.http2client.Http2Client;
import feign.micrometer.MeteredClient;
import io.idempotence.it.wire.RawServer;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.net.http.HttpClient;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Feign over a client of java.net.http that follows redirects as most do, but never from HTTPS to HTTP. Feign does not replace that client
 * by one that follows none, if both have the same connect timeout.
 */
class Http2ClientRedirectsIT extends WireMockTestBase {
    private Kind kind = Kind.PLAIN;

    private enum Kind {
        PLAIN,
        MEASURED,
        ASYNC
    }

    @Override
    BaseBuilder<?, ?> builder() {
        Http2Client http = new Http2Client(HttpClient.newBuilder()
                .followRedirects(HttpClient.Redirect.NORMAL)
                .connectTimeout(Duration.ofMillis(readTimeout(1).connectTimeoutMillis()))
                .build());
        Client measured = new MeteredClient(http, new SimpleMeterRegistry());
        return switch (kind) {
            case PLAIN -> Feign.builder().client(http);
            case MEASURED -> Feign.builder().client(measured);
            case ASYNC -> AsyncFeign.builder().client(http);
        };
    }

    /** The client took ID and body there. */
    @ParameterizedTest
    @EnumSource
    void redirectToAnotherOriginIsTheResponse(Kind of) {
        kind = of;
        AtomicInteger requests = new AtomicInteger();
        try (RawServer elsewhere = RawServer.start((request, socket) -> requests.incrementAndGet())) {
            alwaysGet(status(307).withHeader("Location", elsewhere.url() + "/orders"));
            assertEndsWith(307);
        }
        assertThat(requests).hasValue(0);
    }

    /** The response of an executed call may be a redirect. The call ended as not sent. */
    @ParameterizedTest
    @EnumSource
    void executedCallWhoseRedirectLeadsNowhereIsNotReportedAsNotSent(Kind of) {
        kind = of;
        alwaysGet(status(303).withHeader("Location", nobody() + "/orders/1"));
        assertEndsWith(303);
    }

    private void assertEndsWith(int status) {
        Orders orders = orders(fast().maxAttempts(1));
        assertThatThrownBy(() -> orders.create("x"))
                .isInstanceOfSatisfying(
                        FeignException.class, e -> assertThat(e.status()).isEqualTo(status));
        assertThat(received()).hasSize(1);
    }

    @ParameterizedTest
    @EnumSource
    void redirectWithinTheOriginIsFollowedWithTheId(Kind of) {
        kind = of;
        attempt(1, status(307).withHeader("Location", "/v2/orders"));
        provider.stubFor(post("/v2/orders").atPriority(0).willReturn(ok()));
        assertThat(orders().create("x")).isEqualTo(OK);
        assertThat(bodies()).isEqualTo(List.of("x", "x"));
        assertOneId();
        assertEnd(SUCCEEDED, 1);
    }
}
