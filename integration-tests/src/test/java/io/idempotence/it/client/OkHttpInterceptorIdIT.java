package io.idempotence.it.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.github.resilience4j.retry.RetryConfig;
import io.github.resilience4j.retry.RetryRegistry;
import io.idempotence.IdempotenceId;
import io.idempotence.InboundRequest;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.IdempotenceScope.Work;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import io.idempotence.http.IdempotencyKeyHeader.Style;
import io.idempotence.http.InvalidIdempotencyKeyException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import okhttp3.Call;
import okhttp3.Dispatcher;
import okhttp3.EventListener;
import okhttp3.OkHttpClient;
import okhttp3.Protocol;
import okhttp3.Request;
import okhttp3.RequestBody;
import okhttp3.Response;
import okhttp3.ResponseBody;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Which calls of OkHttp without Feign carry an ID, which ID, and under which name they run. */
class OkHttpInterceptorIdIT extends OkHttpInterceptorTestBase {
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
    void responseTellsTheIdOfItsCall() throws IOException {
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
    @ValueSource(strings = {"GET", "HEAD", "OPTIONS", "TRACE"})
    void safeCallCarriesNoneAndIsLeftToOkHttp(String method) throws IOException {
        requestsGet(status(503));
        assertThat(status(installed(), order().method(method, null))).isEqualTo(503);
        assertThat(ids()).containsExactly("");
        assertThat(events).isEmpty();
    }

    // ---- which ID

    @Test
    @EnabledForJreRange(min = JRE.JAVA_21)
    void scopeHoldsOnVirtualThreads() throws Exception {
        // By reflection, as tests are compiled for 17.
        ExecutorService threads = (ExecutorService)
                Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        Method isVirtual = Thread.class.getMethod("isVirtual");
        List<Object> virtual = new CopyOnWriteArrayList<>();
        OkHttpClient client = installed(
                fast(),
                builder -> builder.dispatcher(new Dispatcher(threads)).addInterceptor(chain -> {
                    try {
                        virtual.add(isVirtual.invoke(Thread.currentThread()));
                    } catch (ReflectiveOperationException e) {
                        throw new LinkageError(e.getMessage(), e);
                    }
                    return chain.proceed(chain.request());
                }));
        requestsGet(status(503));
        IdempotenceScope.with(JOB, () -> enqueue(client.newCall(order().build())))
                .get(10, TimeUnit.SECONDS)
                .close();
        assertThat(IdempotenceScope.with(
                                JOB,
                                () -> CompletableFuture.supplyAsync(
                                        () -> {
                                            try {
                                                return ok(client, order());
                                            } catch (IOException e) {
                                                throw new UncheckedIOException(e);
                                            }
                                        },
                                        IdempotenceScope.carrying(threads)))
                        .get(10, TimeUnit.SECONDS))
                .isEqualTo(OK);
        assertThat(ids()).containsExactly("\"job-1\"", "\"job-1\"", "\"job-1\"");
        assertThat(virtual).hasSize(3).containsOnly(true);
    }

    /** So what is bound to the caller's thread, such as a transaction, is not there. */
    @Test
    void saverOfAnEnqueuedCallRunsInAThreadOfTheDispatcherBeforeAnythingIsSent() throws Exception {
        List<Thread> savers = new CopyOnWriteArrayList<>();
        List<Integer> sent = new CopyOnWriteArrayList<>();
        OkHttpClient client = installed();
        requestsGet(status(503));
        IdempotenceScope.saving(
                        id -> {
                            savers.add(Thread.currentThread());
                            sent.add(received().size());
                        },
                        () -> enqueue(client.newCall(order().build())))
                .get(10, TimeUnit.SECONDS)
                .close();
        assertThat(received()).hasSize(2);
        assertThat(sent).containsExactly(0);
        assertThat(savers).hasSize(1).doesNotContain(Thread.currentThread());
    }

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

    /** Promise P1: two calls never share an ID; the same call made again is the caller's retry. */
    @Test
    void scopeIsForOneCallThatMayBeMadeAgain() throws IOException {
        OkHttpClient client = installed();
        IdempotenceScope.with(JOB, () -> {
            ok(client, order());
            ok(client, order());
            assertThatThrownBy(() -> send(client, to(url("/other"))))
                    .isInstanceOf(IOException.class)
                    .hasCauseInstanceOf(IllegalStateException.class);
            return ok(client, order().put(BODY));
        });
        assertThat(ids()).containsExactly("\"job-1\"", "\"job-1\"", "");
    }

    @Test
    void callThatIsEnqueuedInsideAScopeCarriesItsId() throws Exception {
        attempt(1, status(500));
        OkHttpClient client = installed();
        CompletableFuture<Response> response =
                IdempotenceScope.with(JOB, () -> enqueue(client.newCall(order().build())));
        assertThat(response.get(20, TimeUnit.SECONDS).code()).isEqualTo(200);
        // The same thread of the dispatcher, perhaps: it keeps nothing.
        assertThat(enqueue(client.newCall(order().build()))
                        .get(20, TimeUnit.SECONDS)
                        .code())
                .isEqualTo(200);
        assertThat(ids().subList(0, 2)).containsOnly("\"job-1\"");
        assertThat(ids().subList(2, 4)).doesNotContain("\"job-1\"").doesNotContain("");
    }

    @Test
    void callOfAHandlerHasAnIdThatItsNextExecutionRepeats() throws Exception {
        OkHttpClient client = installed();
        for (int execution = 1; execution <= 2; execution++) {
            Runnable leave = InboundRequest.of("request-1").enter();
            try {
                ok(client, order());
                ok(client, order());
                enqueue(client.newCall(
                                order().post(RequestBody.create("y", TEXT)).build()))
                        .get(20, TimeUnit.SECONDS)
                        .close();
            } finally {
                leave.run();
            }
        }
        assertThat(ids().subList(0, 3)).doesNotHaveDuplicates();
        assertThat(ids().subList(3, 6)).isEqualTo(ids().subList(0, 3));
    }

    @Test
    void idIsSavedBeforeItIsSentAndIsNotSentIfItCannotBe() {
        OkHttpClient client = installed();
        List<String> saved = new ArrayList<>();
        assertThatThrownBy(() -> IdempotenceScope.saving(
                        id -> {
                            saved.add("\"" + id + "\"");
                            throw new UncheckedIOException(new IOException("disk full"));
                        },
                        () -> send(client, order())))
                .isInstanceOf(IOException.class)
                .hasRootCauseMessage("disk full");
        assertThat(received()).isEmpty();
        assertThat(saved).hasSize(1);
    }

    /** It saved a new one, or none. */
    @Test
    void idInEffectIsSavedWhateverGivesIt() throws IOException {
        OkHttpClient client = installed();
        List<String> saved = new ArrayList<>();
        Work<String, IOException> call = () -> ok(client, order());
        Work<String, IOException> saving = () -> IdempotenceScope.saving(id -> saved.add("\"" + id + "\""), call);
        IdempotenceScope.with(JOB, saving);
        IdempotenceScope.resume(JOB, Instant.now(), saving);
        IdempotenceScope.saving(
                id -> saved.add(id.value()), () -> ok(client, order().header("Idempotency-Key", "mine")));
        assertThat(saved).containsExactly("\"job-1\"", "\"job-1\"", "mine").isEqualTo(ids());
    }

    @Test
    void resumedIdThatTheServerHalfMayHaveForgottenIsNotSent() throws IOException {
        OkHttpClient client = installed();
        Instant now = Instant.now();
        IdempotenceScope.resume(JOB, now, () -> ok(client, order()));
        assertThat(ids()).containsExactly("\"job-1\"");
        Instant dayAgo = now.minus(Duration.ofDays(1));
        assertThatThrownBy(() -> IdempotenceScope.resume(JOB, dayAgo, () -> send(client, order())))
                .isInstanceOf(IOException.class)
                .hasCauseInstanceOf(IllegalStateException.class);
        assertThat(received()).hasSize(1);
    }

    @Test
    void resumedCallTakesPartWithItsIdAsAHeaderAndIsNotSentWithAnotherOne() throws IOException {
        OkHttpClient client = installed();
        Instant sent = Instant.now().minusSeconds(3600);
        IdempotenceScope.resume(JOB, sent, () -> ok(client, order().header("Idempotency-Key", "job-1")));
        assertThat(ids()).containsExactly("job-1");
        Instant dayAgo = sent.minus(Duration.ofDays(1));
        assertThatThrownBy(() -> IdempotenceScope.resume(
                        JOB, dayAgo, () -> send(client, order().header("Idempotency-Key", "job-1"))))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("server-retention");
        assertThatThrownBy(() -> IdempotenceScope.resume(
                        JOB, sent, () -> send(client, order().header("Idempotency-Key", "mine"))))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("another ID than the IdempotenceScope.resume");
        assertThat(received()).hasSize(1);
    }

    /** What a call does on its way, such as fetching a token, is outside of its scope. */
    @Test
    void callThatAnInterceptorMakesIsOutsideOfTheScope() throws IOException {
        OkHttpClient tokens = installed();
        OkHttpClient client = installed(
                fast(),
                builder -> builder.addInterceptor(chain -> {
                    ok(tokens, to(url("/token")));
                    return chain.proceed(chain.request());
                }));
        IdempotenceScope.with(JOB, () -> ok(client, order()));
        assertThat(received()).extracting(request -> request.getUrl()).containsExactly("/token", "/orders");
        assertThat(ids().get(0)).isNotEqualTo("\"job-1\"");
        assertThat(ids().get(1)).isEqualTo("\"job-1\"");
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
    void settingsOfAnHttpMethodLieOverThoseOfTheClient() throws IOException {
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

    // ---- beside other interceptors

    @Test
    void interceptorsBeforeSeeTheCallAndThoseAfterSeeEachAttempt() throws IOException {
        attemptsUpTo(2, status(500));
        List<String> before = new ArrayList<>();
        List<String> after = new ArrayList<>();
        OkHttpClient client = built(IdempotentOkHttp.install(
                        plain().addInterceptor(chain -> {
                            before.add(String.valueOf(chain.request().header("Idempotency-Attempt")));
                            return chain.proceed(chain.request());
                        }),
                        fast().build())
                .addInterceptor(chain -> {
                    after.add(chain.request().header("Idempotency-Attempt"));
                    return chain.proceed(chain.request());
                }));
        ok(client, order());
        assertThat(before).containsExactly("null");
        assertThat(after).containsExactly("1", "2", "3");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "\"another\""})
    void interceptorThatSendsAgainUnderAnotherIdOrNoneFailsAndThatRequestIsNotSent(String line) {
        OkHttpClient client = installed(
                fast(),
                builder -> builder.addInterceptor(chain -> {
                    chain.proceed(chain.request()).close();
                    return chain.proceed(withLine(order(), line).build());
                }));
        assertThatThrownBy(() -> send(client, order()))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("changed the Idempotency-Key");
        assertThat(ids()).hasSize(1).doesNotContain("");
    }

    @Test
    void authenticatorThatMakesARequestWithoutTheIdFailsAndThatRequestIsNotSent() {
        alwaysGet(status(401));
        OkHttpClient client = installed(fast(), builder -> builder.authenticator((route, response) -> order().build()));
        assertThatThrownBy(() -> send(client, order()))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("changed the Idempotency-Key");
        assertThat(ids()).hasSize(1).doesNotContain("");
    }

    private static Request.Builder withLine(Request.Builder request, String line) {
        return line.isEmpty() ? request : request.header("Idempotency-Key", line);
    }

    @Test
    void interceptorThatChangesTheIdFailsAndNothingIsSent() {
        OkHttpClient client = installed(
                fast(),
                builder -> builder.addInterceptor(chain -> chain.proceed(chain.request()
                        .newBuilder()
                        .header("Idempotency-Key", "another")
                        .build())));
        assertThatThrownBy(() -> send(client, order()))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("another interceptor or an authenticator changed the Idempotency-Key");
        assertThat(received()).isEmpty();
        assertThat(events.get(0).attempts()).isEqualTo(1);
    }

    @Test
    void eventListenerThatWasThereIsKept() throws IOException {
        ConcurrentLinkedQueue<String> heard = new ConcurrentLinkedQueue<>();
        OkHttpClient client = built(IdempotentOkHttp.install(
                plain().eventListener(new EventListener() {
                    @Override
                    public void callStart(Call call) {
                        heard.add("start");
                    }
                }),
                fast().build()));
        ok(client, order());
        assertThat(heard).containsExactly("start");
    }

    /** Asked for each call: a client derived from one that was put together rightly may have another listener. */
    @Test
    void eventListenerThatReplacedOursIsMentionedOnceAndAScopeStillHoldsInItsThread() throws Exception {
        OkHttpClient client = installed();
        OkHttpClient derived = built(client.newBuilder().eventListener(EventListener.NONE));
        assertThat(warnings(() -> ok(client, order()))).isEmpty();
        List<String> warnings = warnings(() -> {
            assertThat(IdempotenceScope.with(JOB, () -> ok(derived, order()))).isEqualTo(OK);
            IdempotenceScope.with(JOB, () -> enqueue(derived.newCall(order().build())))
                    .get(20, TimeUnit.SECONDS)
                    .close();
        });
        assertThat(ids()).hasSize(3).doesNotHaveDuplicates().element(1).isEqualTo("\"job-1\"");
        assertThat(warnings)
                .singleElement()
                .asString()
                .contains("will NOT carry its ID")
                .contains("call IdempotentOkHttp.install(builder) last");
    }

    @Test
    void interceptorBeforeOursThatSendsTwiceKeepsTheScope() throws Exception {
        OkHttpClient client = built(IdempotentOkHttp.install(
                plain().addInterceptor(chain -> {
                    chain.proceed(chain.request()).close();
                    return chain.proceed(chain.request());
                }),
                fast().build()));
        List<String> warnings =
                warnings(() -> IdempotenceScope.with(JOB, () -> enqueue(client.newCall(order().build())))
                        .get(20, TimeUnit.SECONDS)
                        .close());
        assertThat(ids()).containsExactly("\"job-1\"", "\"job-1\"");
        assertThat(warnings).isEmpty();
    }

    @Test
    void installingTwiceIsAMistake() {
        OkHttpClient.Builder builder = IdempotentOkHttp.install(plain(), fast().build());
        IdempotenceClientConfig config = fast().build();
        assertThatThrownBy(() -> IdempotentOkHttp.install(builder, config)).isInstanceOf(IllegalStateException.class);
        OkHttpClient.Builder derived = built(builder).newBuilder();
        assertThatThrownBy(() -> IdempotentOkHttp.install(derived, config)).isInstanceOf(IllegalStateException.class);
    }
}
