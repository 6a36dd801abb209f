package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.aResponse;
import static com.github.tomakehurst.wiremock.client.WireMock.any;
import static com.github.tomakehurst.wiremock.client.WireMock.urlEqualTo;
import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static org.assertj.core.api.Assertions.assertThat;

import com.github.tomakehurst.wiremock.client.ResponseDefinitionBuilder;
import com.github.tomakehurst.wiremock.http.Fault;
import com.github.tomakehurst.wiremock.verification.LoggedRequest;
import io.idempotence.it.client.ClientUnderTest.End;
import io.idempotence.it.wire.RawRequest;
import io.idempotence.it.wire.RawServer;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Redirects of calls with an ID. Within the origin the call keeps its ID. A redirect to another origin is not followed. */
abstract class RedirectContract extends ResponseContract {
    /** The way in which a client comes to the target of a redirect. */
    enum Follows {
        BY_THE_CLIENT_HALF,
        /** The client half only withholds redirects from it. */
        BY_ITSELF,
        /** A redirect is the response. */
        NOT
    }

    Follows follows() {
        return Follows.BY_THE_CLIENT_HALF;
    }

    /** Whether it makes a GET of a POST with a body. */
    boolean makesAGetOfABody() {
        return follows() != Follows.NOT;
    }

    private static void path(String path, ResponseDefinitionBuilder response) {
        provider.stubFor(any(urlEqualTo(path)).atPriority(5).willReturn(response));
    }

    private static ResponseDefinitionBuilder redirect(int status, String location) {
        return status(status).withHeader("Location", location);
    }

    private static List<String> urls() {
        return received().stream().map(LoggedRequest::getUrl).toList();
    }

    @ParameterizedTest
    @ValueSource(ints = {307, 308})
    void redirectWithinTheOriginKeepsIdBodyAndAttempt(int status) {
        attempt(1, status(429));
        path("/orders", redirect(status, "/v2/orders?x=1"));
        End end = client().order("body");
        assertOneId();
        if (follows() == Follows.NOT) {
            assertStatus(end, status);
            return;
        }
        assertOk(end);
        assertThat(urls()).containsExactly("/orders", "/orders", "/v2/orders?x=1");
        assertThat(bodies()).containsExactly("body", "body", "body");
        assertThat(received().stream().map(r -> header(r, "Idempotency-Attempt")))
                .containsExactly("1", "2", "2");
    }

    /** A stored redirect leads to the operation. It does not show that the operation was executed. */
    @Test
    void targetOfAReplayedRedirectDecides() {
        path("/orders", redirect(307, "/v2/orders").withHeader("Idempotent-Replayed", "true"));
        path("/v2/orders", status(404));
        assertStatus(client().order(), follows() == Follows.NOT ? 307 : 404);
    }

    /** {@link java.net.URI} drops the last segment of the path, and the POST would go to another address. */
    @ParameterizedTest
    @CsvSource({"?step=2, /v2/orders?step=2", "./7?x, /v2/7?x", "../../orders, /orders", "//127.0.0.1:PORT/v3, /v3"})
    void locationIsReadFromTheAddressThatResponds(String location, String next) {
        int port = provider.port();
        path("/v2/orders", redirect(307, location.replace("PORT", "" + port)));
        End end = client(fast(), "http://127.0.0.1:" + port + "/v2").order();
        if (follows() == Follows.NOT) {
            assertStatus(end, 307);
            return;
        }
        assertOk(end);
        assertThat(urls()).containsExactly("/v2/orders", next);
        assertOneId();
    }

    @ParameterizedTest
    @ValueSource(ints = {301, 302, 303})
    void redirectThatBecomesAGetCarriesNoId(int status) {
        path("/orders", redirect(status, "/orders/7"));
        End end = client().order("body");
        if (!makesAGetOfABody()) {
            assertStatus(end, status);
            assertThat(received()).hasSize(1);
            return;
        }
        assertOk(end);
        assertThat(received()).hasSize(2);
        LoggedRequest followed = received().get(1);
        assertThat(followed.getMethod().getName()).isEqualTo("GET");
        assertThat(followed.getUrl()).isEqualTo("/orders/7");
        assertThat(followed.getBodyAsString()).isEmpty();
        assertThat(header(followed, "Idempotency-Key")).isEmpty();
        assertThat(header(followed, "Idempotency-Attempt")).isEmpty();
        assertThat(header(followed, "Content-Type")).isEmpty();
    }

    /** It was executed: the redirect says so. What the GET came to does not undo it. */
    @Test
    void failedGetAfterARedirectLeavesTheOutcomeUnknown() {
        path("/orders", redirect(303, "/orders/7"));
        path("/orders/7", status(503));
        End end = client().order("");
        if (follows() == Follows.NOT) {
            assertStatus(end, 303);
        } else {
            assertUnknown(end);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {300, 301, 302, 303, 307, 308})
    void redirectToAnotherOriginIsTheResponseOfACallWithAnId(int status) {
        try (Elsewhere elsewhere = new Elsewhere()) {
            alwaysGet(redirect(status, elsewhere.server.url() + "/orders"));
            assertStatus(client().order(""), status);
            assertThat(received()).hasSize(1);
            assertThat(elsewhere.received).isEmpty();
        }
        assertEnd(FAILED, 1);
    }

    @Test
    void redirectToAnotherOriginAfterOneWithinTheOriginIsTheResponse() {
        try (Elsewhere elsewhere = new Elsewhere()) {
            path("/orders", redirect(307, "/v2/orders"));
            path("/v2/orders", redirect(308, elsewhere.server.url() + "/orders"));
            assertStatus(client().order(), follows() == Follows.NOT ? 307 : 308);
            assertOneId();
            assertThat(elsewhere.received).isEmpty();
        }
    }

    /** The call ended as unknown, because the GET is no request that settles a doubt. */
    @ParameterizedTest
    @ValueSource(ints = {301, 302, 303, 307, 308})
    void getAfterARedirectMayBeRedirectedAgain(int status) {
        path("/orders", redirect(303, "/orders/7"));
        path("/orders/7", redirect(status, "/orders/7/"));
        End end = client().order("");
        if (follows() == Follows.NOT) {
            assertStatus(end, 303);
            return;
        }
        assertOk(end);
        assertThat(urls()).containsExactly("/orders", "/orders/7", "/orders/7/");
    }

    /** A client that follows by itself may: the GET carries no ID. */
    @Test
    void getAfterARedirectIsNotRedirectedToAnotherOriginEither() {
        if (follows() != Follows.BY_THE_CLIENT_HALF) {
            return;
        }
        try (Elsewhere elsewhere = new Elsewhere()) {
            path("/orders", redirect(303, "/orders/7"));
            path("/orders/7", redirect(302, elsewhere.server.url() + "/orders"));
            assertUnknown(client(fast().maxAttempts(1)).order(""));
            assertThat(urls()).containsExactly("/orders", "/orders/7");
            assertThat(elsewhere.received).isEmpty();
        }
    }

    /** A gateway may redirect without a look at the operation. */
    @ParameterizedTest
    @ValueSource(ints = {307, 308})
    void redirectToAnotherOriginSettlesNoDoubt(int status) {
        try (Elsewhere elsewhere = new Elsewhere()) {
            attempt(1, aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
            attempt(2, redirect(status, elsewhere.server.url() + "/orders"));
            assertUnknown(client().order());
            assertThat(elsewhere.received).isEmpty();
        }
        assertEnd(UNKNOWN, 2);
    }

    /** A login redirects like that, without a look at the operation. A stored redirect is the operation's own. */
    @ParameterizedTest
    @ValueSource(ints = {301, 302, 303})
    void getAfterARedirectSettlesADoubtOnlyIfTheRedirectWasStored(int status) {
        attempt(1, status(502));
        attempt(2, redirect(status, "/login"));
        assertUnknown(client().order(""));
        assertThat(urls()).doesNotContain("/login");
        attempt(2, redirect(status, "/login").withHeader("Idempotent-Replayed", "true"));
        assertStatus(client().order(""), follows() == Follows.NOT ? status : 200);
    }

    @ParameterizedTest
    @ValueSource(strings = {"ftp://x/", "mailto:x"})
    void redirectThatCannotBeFollowedIsTheResponse(String location) {
        alwaysGet(redirect(307, location));
        assertStatus(client().order(), 307);
        assertThat(received()).hasSize(1);
    }

    /** A client that follows by itself decides by itself. */
    @Test
    void redirectInACircleEnds() {
        if (follows() != Follows.BY_THE_CLIENT_HALF) {
            return;
        }
        path("/orders", redirect(307, "/orders/2"));
        path("/orders/2", redirect(307, "/orders"));
        assertStatus(client().order(), 307);
        assertThat(received()).hasSize(21);
    }

    /** An empty address is the one that was asked. */
    @ParameterizedTest
    @ValueSource(strings = {"", "/orders", "orders#top"})
    void redirectToTheSameRequestIsTheResponse(String location) {
        if (follows() == Follows.BY_ITSELF) {
            return;
        }
        alwaysGet(redirect(307, location));
        assertStatus(client().order(), 307);
        assertThat(received()).hasSize(1);
        assertEnd(FAILED, 1);
    }

    /** Another origin. */
    static final class Elsewhere implements AutoCloseable {
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
