package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.aResponse;
import static com.github.tomakehurst.wiremock.client.WireMock.get;
import static com.github.tomakehurst.wiremock.client.WireMock.post;
import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.github.tomakehurst.wiremock.client.ResponseDefinitionBuilder;
import com.github.tomakehurst.wiremock.http.Fault;
import com.github.tomakehurst.wiremock.verification.LoggedRequest;
import feign.FeignException;
import feign.Request;
import io.idempotence.client.feign.FeignOutcomeUnknownException;
import io.idempotence.it.wire.RawRequest;
import io.idempotence.it.wire.RawServer;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Redirects of calls with an ID. Within the origin the call keeps its ID. A redirect to another origin is not followed. */
abstract class RedirectContract extends WireMockTestBase {
    @ParameterizedTest
    @ValueSource(ints = {307, 308})
    void redirectWithinTheOriginKeepsIdBodyAndAttempt(int status) {
        attempt(1, status(503));
        provider.stubFor(post("/orders")
                .atPriority(5)
                .willReturn(aResponse().withStatus(status).withHeader("Location", "/v2/orders?x=1")));
        assertThat(orders().create("body")).isEqualTo(OK);
        assertOneId();
        assertThat(received().stream().map(LoggedRequest::getUrl))
                .containsExactly("/orders", "/orders", "/v2/orders?x=1");
        assertThat(bodies()).containsExactly("body", "body", "body");
        assertThat(received().stream().map(r -> header(r, "Idempotency-Attempt")))
                .containsExactly("1", "2", "2");
    }

    @ParameterizedTest
    @ValueSource(ints = {301, 302, 303})
    void redirectThatBecomesAGetCarriesNoId(int status) {
        provider.stubFor(post("/orders")
                .atPriority(5)
                .willReturn(aResponse().withStatus(status).withHeader("Location", "/orders/7")));
        if (!makesAGetOfARedirectedPost()) {
            assertThatThrownBy(() -> orders().create("body"))
                    .isInstanceOfSatisfying(
                            FeignException.class, e -> assertThat(e.status()).isEqualTo(status));
            assertThat(received()).hasSize(1);
            return;
        }
        assertThat(orders().create("body")).isEqualTo(OK);
        LoggedRequest followed = received().get(1);
        assertThat(followed.getMethod().getName()).isEqualTo("GET");
        assertThat(followed.getUrl()).isEqualTo("/orders/7");
        assertThat(followed.getBodyAsString()).isEmpty();
        assertThat(header(followed, "Idempotency-Key")).isEmpty();
        assertThat(header(followed, "Content-Type")).isEmpty();
    }

    /** Feign's default client does not: it has streamed the body, and plain Feign reports an error. */
    boolean makesAGetOfARedirectedPost() {
        return true;
    }

    /** It was executed: the redirect says so. What the GET came to does not undo it. */
    @Test
    void failedGetAfterARedirectLeavesTheOutcomeUnknown() {
        provider.stubFor(post("/tick")
                .atPriority(5)
                .willReturn(aResponse().withStatus(303).withHeader("Location", "/orders/7")));
        provider.stubFor(get("/orders/7").atPriority(1).willReturn(status(503)));
        assertThatThrownBy(() -> orders().tick()).isInstanceOf(FeignOutcomeUnknownException.class);
    }

    @ParameterizedTest
    @ValueSource(ints = {301, 302, 303, 307, 308})
    void redirectToAnotherOriginIsTheResponseOfACallWithAnId(int status) {
        try (Elsewhere elsewhere = new Elsewhere()) {
            alwaysGet(status(status).withHeader("Location", elsewhere.server.url() + "/orders"));
            assertThatThrownBy(() -> orders().tick())
                    .isInstanceOfSatisfying(
                            FeignException.class, e -> assertThat(e.status()).isEqualTo(status));
            assertThat(received()).hasSize(1);
            assertThat(elsewhere.received).isEmpty();
        }
        assertEnd(FAILED, 1);
    }

    @Test
    void getAfterARedirectIsNotRedirectedToAnotherOriginEither() {
        try (Elsewhere elsewhere = new Elsewhere()) {
            alwaysGet(status(303).withHeader("Location", "/orders/7"));
            provider.stubFor(get("/orders/7")
                    .atPriority(1)
                    .willReturn(status(302).withHeader("Location", elsewhere.server.url() + "/orders")));
            assertThatThrownBy(() -> orders().tick()).isInstanceOf(FeignException.class);
            assertThat(received()).hasSize(2);
            assertThat(elsewhere.received).isEmpty();
        }
    }

    /** A gateway may redirect without a look at the operation. */
    @ParameterizedTest
    @ValueSource(ints = {307, 308})
    void redirectToAnotherOriginSettlesNoDoubt(int status) {
        try (Elsewhere elsewhere = new Elsewhere()) {
            attempt(1, aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
            attempt(2, aResponse().withStatus(status).withHeader("Location", elsewhere.server.url() + "/orders"));
            assertThatThrownBy(() -> orders().create("body")).isInstanceOf(FeignOutcomeUnknownException.class);
            assertThat(elsewhere.received).isEmpty();
        }
        assertEnd(UNKNOWN, 2);
    }

    /** A login redirects like that, without a look at the operation. A stored redirect is the operation's own. */
    @ParameterizedTest
    @ValueSource(ints = {301, 302, 303})
    void getAfterARedirectSettlesADoubtOnlyIfTheRedirectWasStored(int status) {
        ResponseDefinitionBuilder login = aResponse().withStatus(status).withHeader("Location", "/login");
        attempt(1, status(502));
        attempt(2, login);
        assertThatThrownBy(() -> orders().tick()).isInstanceOf(FeignOutcomeUnknownException.class);
        assertThat(received()).noneMatch(request -> request.getUrl().equals("/login"));
        attempt(2, login.withHeader("Idempotent-Replayed", "true"));
        assertThat(orders().tick()).isEqualTo(OK);
    }

    @Test
    void redirectIsTheResponseWhereTheOptionsSayNotToFollow() {
        alwaysGet(aResponse().withStatus(307).withHeader("Location", "/elsewhere"));
        Request.Options options = new Request.Options(5, TimeUnit.SECONDS, 5, TimeUnit.SECONDS, false);
        FeignException end = catchThrowableOfType(
                FeignException.class,
                () -> orders(builder -> builder.options(options)).create("body"));
        assertThat(end.status()).isEqualTo(307);
        assertThat(received()).hasSize(1);
    }

    @ParameterizedTest
    @ValueSource(strings = {"ftp://x/", "::", "mailto:x"})
    void redirectThatCannotBeFollowedIsTheResponse(String location) {
        alwaysGet(aResponse().withStatus(307).withHeader("Location", location));
        FeignException end = catchThrowableOfType(FeignException.class, () -> orders().create("body"));
        assertThat(end.status()).isEqualTo(307);
        assertThat(received()).hasSize(1);
    }

    @Test
    void redirectInACircleEnds() {
        alwaysGet(aResponse().withStatus(307).withHeader("Location", "/orders/2"));
        provider.stubFor(post("/orders/2")
                .atPriority(1)
                .willReturn(aResponse().withStatus(307).withHeader("Location", "/orders")));
        FeignException end = catchThrowableOfType(FeignException.class, () -> orders().create("body"));
        assertThat(end.status()).isEqualTo(307);
        assertThat(received()).hasSize(21);
    }

    /** An empty address is the one that was asked. */
    @ParameterizedTest
    @ValueSource(strings = {"", "/orders"})
    void redirectToTheSameRequestIsTheResponse(String location) {
        alwaysGet(aResponse().withStatus(307).withHeader("Location", location));
        FeignException end = catchThrowableOfType(FeignException.class, () -> orders().create("body"));
        assertThat(end.status()).isEqualTo(307);
        assertThat(received()).hasSize(1);
    }

    /** Another origin. */
    private static final class Elsewhere implements AutoCloseable {
        final List<RawRequest> received = new CopyOnWriteArrayList<>();
        final RawServer server;

        Elsewhere() {
            server = RawServer.start((request, client) -> received.add(request));
        }

        @Override
        public void close() {
            server.close();
        }
    }
}
