package io.idempotence.it.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.github.resilience4j.retry.RetryConfig;
import io.github.resilience4j.retry.RetryRegistry;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import io.idempotence.http.IdempotencyKeyHeader.Style;
import io.idempotence.http.InvalidIdempotencyKeyException;
import java.io.IOException;
import java.net.InetAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import okhttp3.OkHttpClient;
import okhttp3.Protocol;
import okhttp3.RequestBody;
import okhttp3.Response;
import okhttp3.ResponseBody;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests of which calls of OkHttp without Feign carry an ID, which ID, and under which name they run. */
class OkHttpInterceptorIdSelectionIT extends OkHttpInterceptorTestBase {
    private static final IdempotenceId JOB = IdempotenceId.of("job-1");
    private static final RequestBody BODY = RequestBody.create("x", TEXT);

    // ---- which calls

    @ParameterizedTest
    @ValueSource(strings = {"POST", "PATCH"})
    void callOfAProtectedMethodCarriesAnIdEachItsOwn(String method) throws IOException {
        OkHttpClient client = installed();
        ok(client, order().method(method, BODY));
        ok(client, order().method(method, BODY));
        assertThat(ids()).hasSize(2).doesNotHaveDuplicates().allMatch(id -> id.matches("\"[!-~]+\""));
    }

    @Test
    void responseHasTheIdOfItsCall() throws IOException {
        try (Response response = send(installed(), order())) {
            assertThat(ids()).containsExactly(response.request().header("Idempotency-Key"));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"PUT", "DELETE", "PROPPATCH"})
    void callOfAnotherUnsafeMethodCarriesAnIdIfAskedTo(String method) throws IOException {
        OkHttpClient client = installed();
        ok(client, order().method(method, BODY));
        assertThat(ids()).containsExactly("");
        assertThat(attempts()).containsExactly("");
        provider.resetRequests();
        attempt(1, status(500));
        ok(client, order().method(method, BODY).header("idempotency-key", "mine"));
        assertThat(ids()).containsExactly("mine", "mine");
    }

    @Test
    void configAddsPutAndDelete() throws IOException {
        OkHttpClient client = installed(fast().methods("PUT", "DELETE"));
        ok(client, order().put(BODY));
        ok(client, order().delete());
        ok(client, order());
        assertThat(ids()).hasSize(3).doesNotHaveDuplicates().last().isEqualTo("");
    }

    @ParameterizedTest
    @ValueSource(strings = {"GET", "HEAD", "OPTIONS", "TRACE"})
    void headerOfASafeCallIsNotSent(String method) throws IOException {
        assertThat(status(installed(), order().method(method, null).header("idempotency-key", "mine")))
                .isLessThan(500);
        assertThat(ids()).containsExactly("");
    }

    @ParameterizedTest
    @ValueSource(strings = {"GET", "POST"})
    void callOfAClientThatIsNotEnabledIsSentAsItIs(String method) throws IOException {
        OkHttpClient client = installed(fast().client("orders", orders -> orders.enabled(false)));
        requestsGet(status(503));
        assertThat(status(
                        client,
                        order().method(method, method.equals("GET") ? null : BODY)
                                .header("idempotency-key", "not {an} ID")))
                .isEqualTo(503);
        assertThat(ids()).containsExactly("not {an} ID");
        assertThat(attempts()).containsExactly("");
    }

    @ParameterizedTest
    @ValueSource(strings = {"GET", "HEAD", "OPTIONS", "TRACE"})
    void safeCallCarriesNoneAndIsLeftToOkHttp(String method) throws IOException {
        requestsGet(status(503));
        assertThat(status(installed(), order().method(method, null))).isEqualTo(503);
        assertThat(ids()).containsExactly("");
        assertThat(events).isEmpty();
    }

    // ---- which ID

    @Test
    void callersHeaderWinsThenTheScopeThenTheGenerator() throws IOException {
        OkHttpClient client = installed(fast().generator(() -> IdempotenceId.of("generated")));
        attempt(1, status(500));
        IdempotenceScope.with(JOB, () -> {
            ok(client, order().header("Idempotency-Key", "\"mine\""));
            return ok(client, order());
        });
        ok(client, order());
        assertThat(ids())
                .containsExactly("\"mine\"", "\"mine\"", "\"job-1\"", "\"job-1\"", "\"generated\"", "\"generated\"");
    }

    @Test
    void styleOfTheConfigIsKept() throws IOException {
        OkHttpClient client = installed(fast().headerStyle(Style.BARE));
        ok(client, order());
        assertThat(ids().get(0)).matches("[0-9a-f-]{36}");
    }

    @Test
    void headerThatIsNoIdIsAnIOExceptionAndNothingIsSent() {
        OkHttpClient client = installed();
        assertThatThrownBy(() -> send(client, order().header("Idempotency-Key", "\"broken")))
                .isInstanceOf(IOException.class)
                .hasCauseInstanceOf(InvalidIdempotencyKeyException.class);
        assertThatThrownBy(() ->
                        send(client, order().addHeader("Idempotency-Key", "a").addHeader("Idempotency-Key", "a")))
                .isInstanceOf(IOException.class)
                .hasCauseInstanceOf(InvalidIdempotencyKeyException.class);
        assertThat(received()).isEmpty();
        assertThat(events).hasSize(2).allMatch(event -> event.attempts() == 1);
    }

    /** Promise P1, under load. */
    @Test
    void twoHundredCallsAtOnceHaveTwoHundredIds() throws Exception {
        attempt(1, status(503).withHeader("Retry-After-Ms", "1"));
        OkHttpClient client = installed(fast().budget(500, 0, 1));
        client.dispatcher().setMaxRequests(20);
        client.dispatcher().setMaxRequestsPerHost(20);
        List<CompletableFuture<Response>> responses = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            responses.add(enqueue(client.newCall(
                    order().post(RequestBody.create("order " + i, TEXT)).build())));
        }
        for (CompletableFuture<Response> pending : responses) {
            try (Response response = pending.get(60, TimeUnit.SECONDS)) {
                assertThat(response.code()).isEqualTo(200);
            }
        }
        assertThat(ids().stream().distinct()).hasSize(200);
        assertThat(received().stream()
                        .map(r -> r.getBodyAsString() + header(r, "Idempotency-Key"))
                        .distinct())
                .hasSize(200);
        assertThat(received()).hasSizeGreaterThanOrEqualTo(400);
    }

    // ---- names

    @Test
    void clientIsNamedAfterTheHostAndItsPortOrAsGiven() throws IOException {
        OkHttpClient unnamed = built(IdempotentOkHttp.install(plain(), fast().build()));
        ok(unnamed, order());
        ok(unnamed, to("http://localhost:" + provider.port() + "/orders/17?customer=4"));
        ok(installed(), order());
        OkHttpClient proxied = built(IdempotentOkHttp.install(
                plain().dns(host -> List.of(InetAddress.getLoopbackAddress())),
                fast().maxAttempts(1).build()));
        assertThatThrownBy(() -> send(proxied, to("http://shop.test/"))).isInstanceOf(IOException.class);
        assertThat(events)
                .extracting(event -> event.client())
                .containsExactly("127.0.0.1:" + provider.port(), "localhost:" + provider.port(), "orders", "shop.test");
    }

    /** Bounded, for metrics: never a path, and never a method somebody invents. */
    @Test
    void methodOfAnEventIsTheHttpMethod() throws IOException {
        OkHttpClient client = installed();
        ok(client, to(url("/orders/17")));
        ok(client, order().put(BODY).header("Idempotency-Key", "mine"));
        ok(client, order().method("INVENTED", BODY).header("Idempotency-Key", "other"));
        assertThat(events).extracting(event -> event.method()).containsExactly("POST", "PUT", "OTHER");
    }

    @Test
    void settingsBudgetAndRetryAreThoseOfTheClient() throws IOException {
        alwaysGet(status(500));
        RetryRegistry registry = RetryRegistry.ofDefaults();
        IdempotenceClientConfig config = fast().client(
                        "orders", own -> own.maxAttempts(2).statuses(500))
                .retryRegistry(registry)
                .build();
        OkHttpClient client = built(IdempotentOkHttp.install(plain(), config, "orders"));
        status(client, order());
        assertThat(received()).hasSize(2);
        assertThat(config.budget("orders").available()).isEqualTo(495);
        registry.retry(
                "orders#POST",
                RetryConfig.custom()
                        .maxAttempts(5)
                        .waitDuration(Duration.ofMillis(1))
                        .build());
        status(client, order());
        assertThat(received()).hasSize(2 + 5);
    }

    @Test
    void settingsOfAnHttpMethodOverrideThoseOfTheClient() throws IOException {
        alwaysGet(status(500));
        OkHttpClient client = installed(fast().client("orders#POST", own -> own.maxAttempts(2)));
        status(client, order());
        assertThat(received()).hasSize(2);
        status(client, order().put(BODY).header("Idempotency-Key", "mine"));
        assertThat(received()).hasSize(2 + 3);
    }

    /** More hosts than are kept at a time. */
    @Test
    void callerOfManyHostsIsServed() throws IOException {
        OkHttpClient offline = built(IdempotentOkHttp.install(plain(), fast().build())
                .addInterceptor(chain -> new Response.Builder()
                        .request(chain.request())
                        .protocol(Protocol.HTTP_1_1)
                        .code(200)
                        .message("OK")
                        .body(ResponseBody.create("", TEXT))
                        .build()));
        for (int i = 0; i < 2_500; i++) {
            assertThat(status(offline, to("http://customer-" + i + ".test/hook")))
                    .isEqualTo(200);
        }
        assertThat(events.stream().map(event -> event.client()).distinct()).hasSize(2_500);
    }
}
