package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.aResponse;
import static com.github.tomakehurst.wiremock.client.WireMock.absent;
import static com.github.tomakehurst.wiremock.client.WireMock.any;
import static com.github.tomakehurst.wiremock.client.WireMock.equalTo;
import static com.github.tomakehurst.wiremock.client.WireMock.urlEqualTo;
import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.github.tomakehurst.wiremock.client.ResponseDefinitionBuilder;
import com.github.tomakehurst.wiremock.http.Fault;
import feign.AsyncFeign;
import feign.Client;
import feign.FeignException;
import feign.Request;
import feign.RetryableException;
import io.idempotence.client.feign.FeignOutcomeUnknownException;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import java.io.IOException;
import java.net.ConnectException;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import okhttp3.OkHttpClient;
import okhttp3.Response;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Feign with the client half over OkHttp with the client half. Only the upper one sets the ID and retries. */
class OkHttpUnderFeignIT extends OkHttpInterceptorTestBase {
    private final AtomicReference<OkHttpClient> under = new AtomicReference<>();

    private OkHttpClient under(OkHttpClient.Builder builder) {
        under.set(built(builder));
        return under.get();
    }

    /** Through the client under Feign. */
    private String token() throws IOException {
        return ok(under.get(), to(url("/token")));
    }

    private boolean isToken(okhttp3.Request request) {
        return request.url().encodedPath().equals("/token");
    }

    private Response withToken(okhttp3.Interceptor.Chain chain) throws IOException {
        okhttp3.Request request = chain.request();
        return chain.proceed(
                isToken(request)
                        ? request
                        : request.newBuilder().header("Authorization", token()).build());
    }

    /** The first attempt of each token is in vain, each order needs a token. */
    private static void ordersNeedATokenWhichNeedsTwoAttempts() {
        provider.stubFor(any(urlEqualTo("/token"))
                .atPriority(1)
                .withHeader("Idempotency-Attempt", equalTo("1"))
                .willReturn(status(503)));
        provider.stubFor(any(urlEqualTo("/orders"))
                .atPriority(1)
                .withHeader("Authorization", absent())
                .willReturn(status(401)));
    }

    private static void ordersAreElsewhere() {
        provider.stubFor(any(urlEqualTo("/orders"))
                .atPriority(1)
                .withHost(equalTo("127.0.0.1"))
                .willReturn(status(307).withHeader("Location", "http://localhost:" + provider.port() + "/elsewhere")));
    }

    private static List<String> ids(String path) {
        return received().stream()
                .filter(request -> request.getUrl().equals(path))
                .map(request -> header(request, "Idempotency-Key"))
                .toList();
    }

    private static void assertTwoCallsOfTheirOwn() {
        assertThat(ids("/token")).hasSize(2).doesNotContain("");
        assertThat(ids("/token").stream().distinct()).hasSize(1);
        assertThat(ids("/orders").stream().distinct())
                .hasSize(1)
                .doesNotContain("")
                .doesNotContainAnyElementsOf(ids("/token"));
    }

    /** One loop, one ID: Feign's. */
    @Test
    void feignKeepsItsOwnIdAndRetries() {
        alwaysGet(status(503));
        Orders orders = feignOver(installed());
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignException.ServiceUnavailable.class);
        assertThat(received()).hasSize(3);
        assertOneId();
        assertThat(attempts()).containsExactly("1", "2", "3");
        assertThat(events).hasSize(1);
    }

    @Test
    void requestsWithoutAnIdAreNotRetriedBelowFeignEither() {
        Orders orders = feignOver(installed());
        alwaysGet(status(503));
        assertThatThrownBy(orders::list).isInstanceOf(FeignException.ServiceUnavailable.class);
        assertThat(received()).hasSize(1);
        provider.resetRequests();
        assertThatThrownBy(() -> orders.unprotected("x")).isInstanceOf(FeignException.ServiceUnavailable.class);
        assertThat(ids()).containsExactly("");
    }

    /** Feign's default client might have sent it before, silently; OkHttp, also under an asynchronous client, has not. */
    @Test
    void refusedConnectionOfARequestWithoutABodyLeavesNoDoubt() {
        Client below = new feign.okhttp.OkHttpClient(okHttp);
        Orders orders = target(install(feign(below), fast().build()), nobody());
        assertThatThrownBy(orders::protectedDelete)
                .isExactlyInstanceOf(RetryableException.class)
                .hasCauseInstanceOf(ConnectException.class);
        assertEnd(FAILED, 3);
    }

    /** The gateway's 504 may have come after the order was executed, and another origin has no record of it. */
    @Test
    void inDoubtOkHttpFollowsNoRedirectToAnotherOriginBelowFeign() {
        ordersAreElsewhere();
        provider.stubFor(any(urlEqualTo("/orders"))
                .atPriority(1)
                .withHeader("Idempotency-Attempt", equalTo("1"))
                .willReturn(status(504)));
        Orders orders = feignOverOneThatFollowsRedirects();
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
        assertThat(ids("/elsewhere")).isEmpty();
    }

    /** A login redirects like that. Only a stored response of the server half shows whether the order was executed. */
    @Test
    void inDoubtOkHttpFollowsOnlyAStoredRedirectToAGetBelowFeign() {
        ResponseDefinitionBuilder login = status(303).withHeader("Location", "/login");
        attempt(1, status(504));
        attempt(2, login);
        attempt(3, login);
        Orders orders = feignOverOneThatFollowsRedirects();
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
        assertThat(ids("/login")).isEmpty();
        attempt(2, login.withHeader("Idempotent-Replayed", "true"));
        provider.stubFor(
                any(urlEqualTo("/login")).atPriority(1).willReturn(status(302).withHeader("Location", "/home")));
        assertThat(orders.create("x")).isEqualTo(OK);
    }

    /** That nothing responded to the GET does not mean that nothing was sent. */
    @Test
    void postWhoseGetIsLostBelowFeignIsUnknown() {
        provider.stubFor(
                any(urlEqualTo("/orders")).atPriority(1).willReturn(status(303).withHeader("Location", "/orders/7")));
        provider.stubFor(any(urlEqualTo("/orders/7"))
                .atPriority(1)
                .willReturn(aResponse().withFault(Fault.EMPTY_RESPONSE)));
        Orders orders = feignOverOneThatFollowsRedirects();
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
    }

    /**
     * The first of two requests of one attempt may have been executed; what a login or a gateway says to the second does not
     * settle that.
     */
    @ParameterizedTest
    @ValueSource(ints = {401, 404, 503})
    void requestThatOkHttpRepeatsByItselfBelowFeignLeavesItsDoubt(int status) {
        Orders orders = target(install(
                feign(new feign.okhttp.OkHttpClient(installed())),
                fast().maxAttempts(1).build()));
        orders.create("opens a connection to be kept");
        events.clear();
        requestsGet(aResponse().withFault(Fault.EMPTY_RESPONSE), status(status));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
        assertThat(received()).hasSize(3);
        assertEnd(UNKNOWN, 1);
        assertThat(events.get(0).requests()).isEqualTo(1);
    }

    private Orders feignOverOneThatFollowsRedirects() {
        Client below = new feign.okhttp.OkHttpClient(installed());
        return feignOver((Request request, Request.Options options) -> below.execute(request, readTimeout(20_000)));
    }

    /** Its responses come on threads of OkHttp, its requests leave in that of the caller or of the config's executor. */
    @Test
    void futureOfFeignsOwnClientForOkHttpIsFeignsCall() {
        alwaysGet(status(503));
        Orders orders = target(
                install(AsyncFeign.builder().client(new feign.okhttp.OkHttpClient(installed())), fast().build()));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignException.ServiceUnavailable.class);
        assertThat(received()).hasSize(3);
        assertOneId();
        assertEnd(FAILED, 3);
    }

    @Test
    void tokenThatAnAuthenticatorFetchesIsACallOfItsOwn() {
        ordersNeedATokenWhichNeedsTwoAttempts();
        Orders orders = feignOver(under(IdempotentOkHttp.install(plain(), fast().build())
                .authenticator((route, response) -> response.request()
                        .newBuilder()
                        .header("Authorization", token())
                        .build())));
        assertThat(orders.create("x")).isEqualTo(OK);
        assertTwoCallsOfTheirOwn();
    }

    @Test
    void tokenThatAnInterceptorFetchesIsACallOfItsOwn() {
        ordersNeedATokenWhichNeedsTwoAttempts();
        Orders orders =
                feignOver(under(IdempotentOkHttp.install(plain().addInterceptor(this::withToken), fast().build())));
        assertThat(orders.create("x")).isEqualTo(OK);
        assertTwoCallsOfTheirOwn();
    }

    @Test
    void callOfFeignWithinASendingOfFeignLeavesTheOuterOneToFeign() {
        provider.stubFor(any(urlEqualTo("/orders")).atPriority(1).willReturn(status(503)));
        Client below = new feign.okhttp.OkHttpClient(installed());
        Orders within = feignOver(below);
        Orders orders = feignOver((Request request, Request.Options options) -> {
            within.tick();
            return below.execute(request, options);
        });
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignException.ServiceUnavailable.class);
        assertThat(ids("/tick")).hasSize(3).doesNotHaveDuplicates();
        assertThat(ids("/orders")).hasSize(3);
    }

    /** As load balancers do between Feign and its client. */
    @Test
    void requestThatIsSentToAnotherHostIsStillFeigns() {
        alwaysGet(status(503));
        Client below = new feign.okhttp.OkHttpClient(installed());
        Orders orders = feignOver((Request request, Request.Options options) -> below.execute(
                Request.create(
                        request.httpMethod(),
                        request.url().replace("127.0.0.1", "localhost"),
                        request.headers(),
                        request.body(),
                        request.charset(),
                        request.requestTemplate()),
                options));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignException.ServiceUnavailable.class);
        assertThat(received())
                .hasSize(3)
                .allMatch(request -> header(request, "Host").startsWith("localhost"));
        assertThat(events).hasSize(1);
    }
}
