package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.aResponse;
import static com.github.tomakehurst.wiremock.client.WireMock.any;
import static com.github.tomakehurst.wiremock.client.WireMock.urlEqualTo;
import static io.idempotence.client.IdempotenceClientEvent.Result.REPLAYED;
import static io.idempotence.client.IdempotenceClientEvent.Result.SUCCEEDED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.github.tomakehurst.wiremock.client.ResponseDefinitionBuilder;
import com.github.tomakehurst.wiremock.http.Fault;
import com.github.tomakehurst.wiremock.stubbing.Scenario;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.okhttp.OkHttpOutcomeUnknownException;
import io.idempotence.it.wire.RawRequest;
import io.idempotence.it.wire.RawServer;
import java.io.IOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.RequestBody;
import okhttp3.Response;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Redirects: the ID is for the origin it was made for. */
class OkHttpInterceptorRedirectIT extends OkHttpInterceptorTestBase {
    private final List<RawRequest> elsewhere = new CopyOnWriteArrayList<>();

    private RawServer elsewhere(RawServer.Handler handler) {
        return RawServer.start((request, client) -> {
            elsewhere.add(request);
            handler.handle(request, client);
        });
    }

    private static RawServer.Handler responding(String statusLine) {
        return (RawRequest request, Socket client) -> client.getOutputStream()
                .write(("HTTP/1.1 " + statusLine + "\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
                        .getBytes(StandardCharsets.ISO_8859_1));
    }

    private static void redirects(int status, String location) {
        path("/orders", status(status).withHeader("Location", location));
    }

    /** Another origin, on the same machine. */
    private static String otherHost(String path) {
        return "http://localhost:" + provider.port() + path;
    }

    private static void path(String path, ResponseDefinitionBuilder response) {
        provider.stubFor(any(urlEqualTo(path)).atPriority(1).willReturn(response));
    }

    /** As if the client followed no redirects. */
    @Test
    void redirectToAnotherOriginIsTheWholeResponse() throws IOException {
        redirects(307, otherHost("/other"));
        try (Response response = send(installed(), order())) {
            assertThat(response.code()).isEqualTo(307);
            assertThat(response.header("Location")).isEqualTo(otherHost("/other"));
            assertThat(response.body().string()).isEqualTo("status 307");
            assertThat(response.priorResponse()).isNull();
        }
    }

    /** Another name is another origin, even on the same machine; and so is another scheme. */
    @Test
    void redirectToAnotherHostOrSchemeIsTheResponse() throws IOException {
        OkHttpClient client = installed();
        redirects(307, otherHost("/other"));
        assertThat(status(client, order())).isEqualTo(307);
        redirects(307, "https://127.0.0.1:" + provider.httpsPort() + "/other");
        assertThat(status(client, order())).isEqualTo(307);
        assertThat(received()).hasSize(2);
    }

    @Test
    void tokenThatAnInterceptorFetchesOnTheWayIsNoRedirect() throws IOException {
        attempt(1, aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
        try (RawServer auth = elsewhere(responding("200 OK"))) {
            Request token = to(auth.url() + "/token").build();
            OkHttpClient client = installed(
                    fast(),
                    builder -> builder.addInterceptor(chain -> {
                        chain.proceed(token).close();
                        chain.proceed(chain.request()).close();
                        chain.proceed(token).close();
                        return chain.proceed(chain.request());
                    }));
            assertThat(ok(client, order())).isEqualTo(OK);
        }
        assertOneId();
        assertThat(received()).hasSize(3);
        assertThat(elsewhere)
                .hasSize(3)
                .allSatisfy(request -> assertThat(request.head()).doesNotContainIgnoringCase("idempotency-"));
        assertEnd(SUCCEEDED, 2);
    }

    @Test
    void callInDoubtIsStillRedirectedWithinTheOrigin() throws IOException {
        redirects(307, "/other");
        attempt(1, aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
        assertThat(ok(installed(), order())).isEqualTo(OK);
        assertOneId();
    }

    /** Nobody goes there, so what the server half had stored is the response. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void storedRedirectThatNobodyFollowsSettlesADoubt(boolean followsOthers) throws IOException {
        attempt(1, aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
        attempt(2, status(307).withHeader("Idempotent-Replayed", "true").withHeader("Location", nobody()));
        OkHttpClient client = installed(fast(), builder -> builder.followRedirects(followsOthers));
        try (Response response = send(client, order())) {
            assertThat(response.code()).isEqualTo(307);
            assertThat(response.header("Location")).isNotEmpty();
        }
        assertEnd(REPLAYED, 2);
    }

    /** The first request of the attempt may have been executed; the GET of a login cannot tell. */
    @Test
    void getAfterARequestThatOkHttpRepeatedByItselfIsNotSent() throws IOException {
        OkHttpClient client = installed();
        ok(client, order());
        requestsGet(aResponse().withFault(Fault.EMPTY_RESPONSE), status(303).withHeader("Location", "/login"));
        assertThatThrownBy(() -> send(client, order())).isInstanceOf(OkHttpOutcomeUnknownException.class);
        assertThat(received()).noneMatch(request -> request.getUrl().equals("/login"));
    }

    /** A call without an ID has none to lose; it is judged as ever. */
    @Test
    void callWithoutAnIdIsRedirectedAsEver() throws IOException {
        try (RawServer other = elsewhere(responding("503 Error"))) {
            redirects(307, other.url() + "/orders");
            assertThat(status(installed(), order().put(RequestBody.create("x", TEXT))))
                    .isEqualTo(503);
        }
        assertThat(elsewhere).hasSize(1);
    }

    /** The POST is asked again under its ID, and the server half replays its redirect. */
    @Test
    void getAfterThePostThatFailsIsReachedAgain() throws IOException {
        ResponseDefinitionBuilder redirect = status(303).withHeader("Location", url("/orders/1"));
        attempt(1, redirect);
        attempt(2, redirect.withHeader("Idempotent-Replayed", "true"));
        provider.stubFor(any(urlEqualTo("/orders/1"))
                .atPriority(1)
                .inScenario("get")
                .whenScenarioStateIs(Scenario.STARTED)
                .willReturn(status(503))
                .willSetStateTo("fine"));
        assertThat(ok(installed(), order())).isEqualTo(OK);
        assertThat(received()).hasSize(4);
        assertThat(ids().get(0)).isEqualTo(ids().get(2)).isNotEmpty();
    }

    /** It was executed: the redirect says so. What the GET came to does not undo it, for the next call in the scope neither. */
    @ParameterizedTest
    @ValueSource(ints = {404, 503})
    void failedGetAfterThePostLeavesTheOutcomeUnknown(int status) throws IOException {
        redirects(303, url("/orders/1"));
        path("/orders/1", status(status));
        OkHttpClient client = installed();
        IdempotenceScope.<@Nullable Void, IOException>with(IdempotenceId.of("job-1"), () -> {
            assertThatThrownBy(() -> send(client, order())).isInstanceOf(OkHttpOutcomeUnknownException.class);
            path("/orders", status(404));
            assertThatThrownBy(() -> send(client, order())).isInstanceOf(OkHttpOutcomeUnknownException.class);
            return null;
        });
    }

    /** That nothing responded to the GET does not mean that nothing was sent. */
    @Test
    void postWhoseGetIsLostIsUnknown() {
        redirects(303, "/orders/7");
        path("/orders/7", aResponse().withFault(Fault.EMPTY_RESPONSE));
        OkHttpClient client = installed();
        assertThatThrownBy(() -> send(client, order())).isInstanceOf(OkHttpOutcomeUnknownException.class);
        // What the GET of the second attempt brought could not tell.
        assertEnd(UNKNOWN, 2);
    }

    /** An interceptor below ours puts an instance in the place of a service's name, another one for each attempt. */
    private OkHttpClient balanced(String... hosts) {
        Iterator<String> instances = List.of(hosts).iterator();
        return installed(
                fast(),
                builder -> builder.addInterceptor(chain -> chain.proceed(chain.request()
                        .newBuilder()
                        .url(chain.request()
                                .url()
                                .newBuilder()
                                .host(instances.next())
                                .port(provider.port())
                                .build())
                        .build())));
    }

    private static Request.Builder orderOfTheService() {
        return order().url("http://orders/orders");
    }

    @Test
    void otherInstanceForEachAttemptGetsTheSameId() throws IOException {
        attemptsUpTo(2, status(503));
        assertThat(ok(balanced("127.0.0.1", "localhost", "127.0.0.1"), orderOfTheService()))
                .isEqualTo(OK);
        assertOneId();
        assertThat(received())
                .extracting(request -> header(request, "Host").replaceAll(":.*", ""))
                .containsExactly("127.0.0.1", "localhost", "127.0.0.1");
        assertEnd(SUCCEEDED, 3);
    }

    @Test
    void redirectOfAnInstanceToItselfIsFollowedAndToAnotherOriginIsNot() throws IOException {
        redirects(307, url("/other"));
        path("/other", status(308).withHeader("Location", otherHost("/elsewhere")));
        assertThat(status(balanced("127.0.0.1"), orderOfTheService())).isEqualTo(308);
        assertThat(received()).hasSize(2);
        assertOneId();
    }
}
