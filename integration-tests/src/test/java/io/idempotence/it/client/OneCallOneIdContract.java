package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.aResponse;
import static com.github.tomakehurst.wiremock.client.WireMock.equalTo;
import static com.github.tomakehurst.wiremock.client.WireMock.get;
import static com.github.tomakehurst.wiremock.client.WireMock.matching;
import static com.github.tomakehurst.wiremock.client.WireMock.post;
import static com.github.tomakehurst.wiremock.client.WireMock.postRequestedFor;
import static com.github.tomakehurst.wiremock.client.WireMock.urlEqualTo;
import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.SUCCEEDED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.github.tomakehurst.wiremock.client.ResponseDefinitionBuilder;
import com.github.tomakehurst.wiremock.http.Fault;
import com.github.tomakehurst.wiremock.verification.LoggedRequest;
import feign.AsyncClient;
import feign.Capability;
import feign.Client;
import feign.FeignException;
import feign.InvocationHandlerFactory;
import feign.InvocationHandlerFactory.MethodHandler;
import feign.Request;
import feign.RequestInterceptor;
import feign.RetryableException;
import feign.Retryer;
import feign.codec.Decoder;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.feign.FeignOutcomeUnknownException;
import io.idempotence.client.feign.IdempotenceCapability;
import io.idempotence.http.IdempotencyKeyHeader.Style;
import io.idempotence.http.InvalidIdempotencyKeyException;
import io.idempotence.it.wire.RawRequest;
import io.idempotence.it.wire.RawServer;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Promise P1, as the journal of the provider shows it: one call, one ID. The facts are those of "Feign facts that bend the
 * design". Extend it, say which HTTP client.
 */
abstract class OneCallOneIdContract extends WireMockTestBase {
    // ---- on the wire

    @Test
    void attemptsAreNumberedAndAskToBeHeldWhileTheFirstOneRuns() {
        attemptsUpTo(2, status(500));
        orders(fast()).create("x");
        assertOneId();
        assertThat(received().stream().map(request -> header(request, "Idempotency-Attempt")))
                .containsExactly("1", "2", "3");
        assertThat(received().stream().map(request -> header(request, "Prefer")))
                .containsOnly("wait=5");
        assertThat(bodies()).containsOnly("x");
    }

    @Test
    void holdingCanBeSwitchedOff() {
        orders(fast().preferWait(Duration.ZERO)).create("x");
        assertThat(received().stream().map(request -> header(request, "Prefer")))
                .containsExactly("");
    }

    @Test
    void headerIsQuotedOrBareAsConfigured() {
        orders(fast().headerStyle(Style.QUOTED)).create("x");
        orders(fast().headerStyle(Style.BARE)).create("x");
        assertThat(ids().get(0)).matches("\"[0-9a-f-]{36}\"");
        assertThat(ids().get(1)).matches("[0-9a-f-]{36}");
    }

    @Test
    void twoCallsWithEqualArgumentsCarryTwoIds() {
        Orders orders = orders();
        orders.create("x");
        orders.create("x");
        assertThat(Set.copyOf(ids())).hasSize(2);
    }

    @Test
    void callWithoutArgumentsKeepsItsId() {
        attemptsUpTo(2, status(500));
        orders().tick();
        assertOneId();
        assertThat(received()).hasSize(3);
    }

    // ---- which calls carry one

    @Test
    void putAndDeleteCarryAnIdOnlyWhenTheySaySo() {
        Orders orders = orders();
        orders.put("x");
        orders.delete();
        orders.unprotected("x");
        assertThat(ids()).containsExactly("", "", "");
        assertThat(attempts()).containsExactly("");
        orders.protectedPut("x");
        orders.protectedDelete();
        assertThat(ids().subList(3, 5)).allMatch(id -> id.matches("\"[0-9a-f-]{36}\""));
    }

    @Test
    void putAndDeleteCarryAnIdWhenConfigured() {
        attemptsUpTo(1, status(500));
        Orders orders = orders(fast().methods("POST", "PUT", "DELETE"));
        orders.put("x");
        assertOneId();
        assertThat(received()).hasSize(2);
        orders.delete();
        assertThat(received()).hasSize(4);
        assertThat(Set.copyOf(ids())).hasSize(2).doesNotContain("");
    }

    @Test
    void getNeverCarriesAnIdAndIsNotRetried() {
        requestsGet(status(500));
        assertThatThrownBy(() -> orders().list()).isInstanceOf(FeignException.InternalServerError.class);
        assertThat(ids()).containsExactly("");
        assertEnd(FAILED, 1);
    }

    @Test
    void headerArgumentOfACallThatCarriesNoIdIsNotSent() {
        Orders orders = orders();
        orders.listAs("mine");
        orders.unprotectedAs("mine", "x");
        assertThat(ids()).containsExactly("", "");
        assertThat(attempts()).containsExactly("");
    }

    // ---- which ID

    @Test
    void callersHeaderComesBeforeScopeAndStaysAsItIsOnEveryAttempt() {
        attemptsUpTo(2, status(500));
        Orders orders = orders();
        IdempotenceScope.with(IdempotenceId.of("scoped"), () -> orders.createAs("mine-1", "x"));
        assertThat(ids()).containsExactly("mine-1", "mine-1", "mine-1");
    }

    /** Feign writes CR and LF as they are. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "a\r\nX-Evil: 1",
                "a\nX-Evil: 1",
                "a\rb",
                "\"a\r\nX-Evil: 1\"",
                "\"open",
                "two words",
                "ü",
                "a\u0000b"
            })
    void callersHeaderThatIsNoIdIsRefusedBeforeAnythingIsSent(String id) {
        Orders orders = orders();
        assertThatThrownBy(() -> orders.createAs(id, "x")).isInstanceOf(InvalidIdempotencyKeyException.class);
        assertThat(received()).isEmpty();
    }

    /** Braces are template expressions to Feign. */
    @ParameterizedTest
    @ValueSource(strings = {"{}", "{id}", "order-{body}-1", "a{b", "%7B1%7D"})
    void bracesInAnIdAreNotExpanded(String id) {
        attemptsUpTo(1, status(500));
        Orders orders = orders();
        IdempotenceScope.with(IdempotenceId.of(id), () -> orders.create("x"));
        assertThat(ids()).containsExactly("\"" + id + "\"", "\"" + id + "\"");
        orders.createAs("\"" + id + "\"", "x");
        assertThat(ids().get(2)).isEqualTo("\"" + id + "\"");
    }

    @Test
    void scopeGivesItsIdToACallAndToTheSameCallMadeAgain() {
        requestsGet(status(404));
        Orders orders = orders();
        IdempotenceScope.with(IdempotenceId.of("job-7"), () -> {
            assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignException.NotFound.class);
            orders.create("x");
            orders.list();
            orders.put("x");
        });
        orders.create("x");
        assertThat(ids().subList(0, 4)).containsExactly("\"job-7\"", "\"job-7\"", "", "");
        assertThat(ids().get(4)).isNotEqualTo("\"job-7\"");
    }

    @Test
    void scopeRefusesToGiveOneIdToTwoDifferentCalls() {
        Orders orders = orders();
        IdempotenceScope.with(IdempotenceId.of("job-7"), () -> {
            orders.create("x");
            assertThatThrownBy(orders::tick).isInstanceOf(IllegalStateException.class);
        });
        assertThat(received()).hasSize(1);
    }

    @Test
    void innerScopeHoldsUntilItsExit() {
        Orders orders = orders();
        IdempotenceScope.with(IdempotenceId.of("outer"), () -> {
            IdempotenceScope.with(IdempotenceId.of("inner"), () -> orders.tick());
            orders.create("x");
        });
        assertThat(ids()).containsExactly("\"inner\"", "\"outer\"");
    }

    // ---- attempts

    /** Interceptors run again on every attempt, and {@code header} appends. */
    @Test
    void interceptorThatMakesAnIdPerAttemptCannotGiveACallTwo() {
        attemptsUpTo(2, status(500));
        RequestInterceptor naive =
                template -> template.header("idempotency-key", UUID.randomUUID().toString());
        orders(builder -> builder.requestInterceptor(naive)).create("x");
        assertThat(received()).hasSize(3);
        assertThat(Set.copyOf(ids())).hasSize(1);
        assertThat(ids().get(0)).matches("[0-9a-f-]{36}");
    }

    @Test
    void interceptorsOfTheApplicationRunOnEveryAttempt() {
        attemptsUpTo(2, status(500));
        AtomicInteger signature = new AtomicInteger();
        orders(builder -> builder.requestInterceptor(t -> t.header("X-Signature", "s" + signature.incrementAndGet())))
                .create("x");
        assertThat(received().stream().map(request -> header(request, "X-Signature")))
                .containsExactly("s1", "s2", "s3");
        assertOneId();
    }

    /** A retry around Feign's handler makes a new template each time. */
    @Test
    void retryBetweenProxyAndHandlerKeepsTheId() {
        requestsGet(status(404), status(404));
        orders(builder -> builder.addCapability(new RetryCapability(3))).create("x");
        assertThat(received()).hasSize(3);
        assertOneId();
    }

    // ---- Retryers, capabilities and handlers of others

    /** Feign's own Retryer would make 5 x 3 requests. */
    @Test
    void retryerOfFeignIsSwitchedOff() {
        alwaysGet(status(503).withHeader("Retry-After-Ms", "1"));
        Orders orders = orders(builder -> builder.retryer(new Retryer.Default(1, 1, 5))
                .errorDecoder((method, response) -> new RetryableException(
                        503, "again", response.request().httpMethod(), (Long) null, response.request())));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(RetryableException.class);
        assertThat(received()).hasSize(3);
        assertEnd(FAILED, 3);
    }

    /** Feign calls it by reflection, and on Feign 13.6 the newer types do not exist. */
    @Test
    void capabilityIsPublicAndNamesNoTypeThatOldFeignsLack() {
        assertThat(Modifier.isPublic(IdempotenceCapability.class.getModifiers()))
                .isTrue();
        Set<Class<?>> enriched = Stream.of(IdempotenceCapability.class.getDeclaredMethods())
                .filter(method -> method.getName().equals("enrich") && !method.isBridge())
                .map(method -> method.getParameterTypes()[0])
                .collect(Collectors.toSet());
        assertThat(enriched).contains(InvocationHandlerFactory.class, Client.class, Retryer.class);
        assertThat(enriched.stream().map(Class::getName))
                .doesNotContain("feign.RequestInterceptors", "feign.MethodInterceptor");
    }

    /** Added before ours, a breaker counts calls and not attempts, and its fallback comes after the attempts. */
    @Test
    void breakerAddedBeforeOursCountsCallsAndFallsBackAfterAllAttempts() {
        alwaysGet(status(503));
        BreakerCapability breaker = new BreakerCapability();
        assertThat(orders(builder -> builder.addCapability(breaker)).create("x"))
                .isEqualTo("fallback");
        assertThat(breaker.failures).hasValue(1);
        assertThat(received()).hasSize(3);
        assertOneId();
    }

    @Test
    void breakerAddedBeforeOursCountsARescuedCallAsSuccess() {
        attemptsUpTo(2, status(503));
        BreakerCapability breaker = new BreakerCapability();
        assertThat(orders(builder -> builder.addCapability(breaker)).create("x"))
                .isEqualTo(OK);
        assertThat(breaker.failures).hasValue(0);
        assertThat(breaker.successes).hasValue(1);
    }

    /**
     * Added after ours, a capability that brings its own handler drops ours. Where the mistake is let through, no request goes
     * out unprotected.
     */
    @Test
    void capabilityAddedAfterOursNeverMakesACallWithoutAnId() {
        requestsGet(status(404), status(404));
        try {
            target(install(feign(), fast().build()).addCapability(new RetryCapability(3)))
                    .create("x");
        } catch (RuntimeException e) {
            // refusing the builder or the call is as good
        }
        assertThat(ids()).isNotEmpty().doesNotContain("");
    }

    /** As the capabilities of caching and of Micrometer: they wrap what is there, and drop nothing. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void capabilitiesThatWrapMaySitOnEitherSide(boolean before) {
        attemptsUpTo(2, status(500));
        CachingStandIn wrapping = new CachingStandIn();
        Orders orders = before
                ? orders(builder -> builder.addCapability(wrapping))
                : target(install(feign(), fast().build()).addCapability(wrapping));
        assertThat(orders.create("x")).isEqualTo(OK);
        assertOneId();
        assertThat(attempts()).containsExactly("1", "2", "3");
        assertThat(wrapping.calls).hasValue(1);
        assertThat(wrapping.requests).hasValue(3);
        assertThat(wrapping.decoded).hasValue(1);
        assertEnd(SUCCEEDED, 3);

        orders.tick();
        assertThat(attempts()).containsExactly("1", "2", "3");
        assertThat(received()).hasSize(6);
        assertThat(Set.copyOf(ids())).hasSize(2);
        assertThat(wrapping.calls).hasValue(2);
    }

    // ---- threads

    /** A thread-local alone would lose the call. */
    @Test
    void hopToAPooledThreadKeepsIdAndScope() throws Exception {
        ExecutorService pool = Executors.newSingleThreadExecutor();
        try {
            attemptsUpTo(2, status(500));
            Orders orders = orders(builder -> builder.invocationHandlerFactory(hopping(pool)));
            orders.create("x");
            assertOneId();
            IdempotenceScope.with(IdempotenceId.of("job-7"), () -> orders.create("y"));
            orders.create("z");
            assertThat(received()).hasSize(9);
            assertThat(ids().subList(3, 6)).containsOnly("\"job-7\"");
            // An inherited ID in a pooled thread would be a wrong replay.
            assertThat(Set.copyOf(ids())).hasSize(3);
        } finally {
            pool.shutdownNow();
        }
    }

    // ---- default methods, methods of Object, nested calls

    @Test
    void defaultMethodOpensNoCallButEachCallInItDoes() {
        attemptsUpTo(1, status(500));
        assertThat(orders().twice()).isEqualTo(OK + OK);
        assertThat(bodies()).containsExactly("a", "a", "b", "b");
        assertThat(ids().get(0)).isEqualTo(ids().get(1)).isNotEqualTo(ids().get(2));
        assertThat(ids().get(2)).isEqualTo(ids().get(3));
        assertThat(events).hasSize(2);
    }

    @Test
    void methodsOfObjectOpenNoCallAndProxiesCompareByTheirTargets() {
        Orders one = orders();
        Orders same = orders();
        Orders other = target(install(feign(), fast().build()), "http://127.0.0.1:1");
        assertThat(one).isEqualTo(same).hasSameHashCodeAs(same).isNotEqualTo(other);
        assertThat(one.equals(null)).isFalse();
        assertThat(one.toString()).isNotEmpty();
        assertThat(new HashSet<>(List.of(one))).contains(same);
        assertThat(received()).isEmpty();
        assertThat(events).isEmpty();
    }

    // ---- bodies

    /** An encoder runs on every attempt; another body under the same ID would be refused with 422. */
    @Test
    void bodyWithATimeInItIsFrozenAtTheFirstAttempt() {
        attemptsUpTo(2, status(500));
        AtomicInteger encoded = new AtomicInteger();
        orders(builder -> builder.encoder((object, type, template) -> template.body("{\"n\":"
                        + encoded.incrementAndGet() + ",\"at\":\"" + Instant.now() + "\",\"of\":\"" + object + "\"}")))
                .create("x");
        assertThat(received()).hasSize(3);
        assertThat(Set.copyOf(bodies())).hasSize(1);
        assertThat(bodies().get(0)).startsWith("{\"n\":1,");
    }

    /** As feign-form does it. */
    @Test
    void randomBoundaryIsFrozenInBodyAndContentType() {
        attemptsUpTo(2, status(500));
        Orders orders = orders(builder -> builder.encoder((object, type, template) -> {
            String boundary = UUID.randomUUID().toString();
            template.header("Content-Type", "multipart/form-data; boundary=" + boundary);
            template.body("--" + boundary + "\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n" + object + "\r\n--"
                    + boundary + "--\r\n");
        }));
        orders.create("x");
        assertThat(received()).hasSize(3);
        assertThat(Set.copyOf(bodies())).hasSize(1);
        String boundary = bodies().get(0).substring(2, 38);
        assertThat(received().stream().map(request -> header(request, "Content-Type")))
                .containsOnly("multipart/form-data; boundary=" + boundary);

        orders.create("x");
        assertThat(bodies().get(3)).isNotEqualTo(bodies().get(0));
    }

    // ---- many at once

    @Test
    void twoHundredConcurrentCallsCarryTwoHundredIds() throws Exception {
        // Every body that ends in 7 fails once, so that calls of one and of two requests are mixed.
        provider.stubFor(post(urlEqualTo("/orders"))
                .atPriority(1)
                .withHeader("Idempotency-Attempt", equalTo("1"))
                .withRequestBody(matching("call-\\d*7"))
                .willReturn(status(500)));
        Orders orders = orders(fast());
        ExecutorService callers = Executors.newFixedThreadPool(200);
        try {
            List<Callable<String>> calls = new ArrayList<>();
            for (int i = 0; i < 200; i++) {
                String body = "call-" + i;
                calls.add(() -> orders.create(body));
            }
            for (Future<String> call : callers.invokeAll(calls, 60, TimeUnit.SECONDS)) {
                assertThat(call.get()).isEqualTo(OK);
            }
        } finally {
            callers.shutdownNow();
        }
        assertThat(received()).hasSizeGreaterThanOrEqualTo(220);
        assertThat(Set.copyOf(ids())).hasSize(200).doesNotContain("");
        assertThat(received().stream()
                        .map(request -> header(request, "Idempotency-Key") + request.getBodyAsString())
                        .distinct())
                .hasSize(200);
    }

    /** An interceptor that calls another service before each attempt, in twenty threads at once. */
    @Test
    void nestedCallsOfTwentyThreadsKeepTheirIdsApart() throws Exception {
        provider.stubFor(post(urlEqualTo("/orders"))
                .atPriority(1)
                .withHeader("Idempotency-Attempt", equalTo("1"))
                .willReturn(status(500)));
        AtomicReference<Orders> itself = new AtomicReference<>();
        Orders orders = orders(
                fast(),
                builder -> builder.options(readTimeout(20_000)).requestInterceptor(template -> {
                    if (template.path().equals("/orders")) {
                        itself.get().tick();
                    }
                }));
        itself.set(orders);
        ExecutorService callers = Executors.newFixedThreadPool(20);
        try {
            List<Callable<String>> calls = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                String body = "call-" + i;
                calls.add(() -> IdempotenceScope.with(IdempotenceId.of("id-of-" + body), () -> orders.create(body)));
            }
            for (Future<String> call : callers.invokeAll(calls, 60, TimeUnit.SECONDS)) {
                assertThat(call.get()).isEqualTo(OK);
            }
        } finally {
            callers.shutdownNow();
        }
        List<LoggedRequest> outer = provider.findAll(postRequestedFor(urlEqualTo("/orders")));
        assertThat(outer).hasSize(40);
        assertThat(outer)
                .allMatch(request ->
                        header(request, "Idempotency-Key").equals("\"id-of-" + request.getBodyAsString() + "\""));
        List<LoggedRequest> inner = provider.findAll(postRequestedFor(urlEqualTo("/tick")));
        assertThat(inner).hasSize(40);
        assertThat(inner.stream()
                        .map(request -> header(request, "Idempotency-Key"))
                        .distinct())
                .hasSize(40)
                .noneMatch(id -> id.startsWith("\"id-of-"));
    }

    // ---- stand-ins for what applications add

    private static InvocationHandlerFactory hopping(ExecutorService pool) {
        return (target, dispatch) -> {
            InvocationHandler usual = new InvocationHandlerFactory.Default().create(target, dispatch);
            return (proxy, method, args) -> {
                Callable<Object> call = () -> invoke(usual, proxy, method, args);
                return pool.submit(call).get(20, TimeUnit.SECONDS);
            };
        };
    }

    private static Object invoke(InvocationHandler handler, Object proxy, Method method, Object[] args)
            throws Exception {
        try {
            return handler.invoke(proxy, method, args);
        } catch (Exception | Error e) {
            throw e;
        } catch (Throwable t) {
            throw new AssertionError(t);
        }
    }

    // ---- redirects

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

    /** As Resilience4jFeign's with a retry: replaces the factory by its own. Public because Feign calls it by reflection. */
    public static final class RetryCapability implements Capability {
        private final int attempts;

        RetryCapability(int attempts) {
            this.attempts = attempts;
        }

        @Override
        public InvocationHandlerFactory enrich(InvocationHandlerFactory factory) {
            return (target, dispatch) -> (proxy, method, args) -> attempt(dispatch.get(method), args, attempts);
        }

        private static Object attempt(MethodHandler handler, Object[] args, int left) throws Throwable {
            Object response;
            try {
                response = handler.invoke(args);
            } catch (FeignException e) {
                if (left == 1) {
                    throw e;
                }
                return attempt(handler, args, left - 1);
            }
            return response instanceof CompletableFuture<?> later ? later(later, handler, args, left) : response;
        }

        private static CompletableFuture<?> later(
                CompletableFuture<?> response, MethodHandler handler, Object[] args, int left) {
            return response.handle((value, thrown) -> {
                        if (!(thrown instanceof FeignException) || left == 1) {
                            return response;
                        }
                        try {
                            return (CompletableFuture<?>) attempt(handler, args, left - 1);
                        } catch (Throwable t) {
                            throw new CompletionException(t);
                        }
                    })
                    .thenCompose(last -> last);
        }
    }

    /** As Resilience4jFeign's with a circuit breaker and a fallback. Public because Feign calls it by reflection. */
    public static final class BreakerCapability implements Capability {
        final AtomicInteger successes = new AtomicInteger();
        final AtomicInteger failures = new AtomicInteger();

        @Override
        public InvocationHandlerFactory enrich(InvocationHandlerFactory factory) {
            return (target, dispatch) -> (proxy, method, args) -> {
                try {
                    Object response = dispatch.get(method).invoke(args);
                    if (response instanceof CompletableFuture<?> later) {
                        return later.handle((value, thrown) -> counted(value, thrown));
                    }
                    return counted(response, null);
                } catch (FeignException e) {
                    return counted(null, e);
                }
            };
        }

        private Object counted(Object value, Throwable thrown) {
            (thrown == null ? successes : failures).incrementAndGet();
            return thrown == null ? value : "fallback";
        }
    }

    /**
     * A stand-in for Feign's caching capability, wrapped around every place that capabilities can wrap. Public because Feign
     * calls it by reflection.
     */
    public static final class CachingStandIn implements Capability {
        final AtomicInteger calls = new AtomicInteger();
        final AtomicInteger requests = new AtomicInteger();
        final AtomicInteger decoded = new AtomicInteger();

        @Override
        public InvocationHandlerFactory enrich(InvocationHandlerFactory factory) {
            return (target, dispatch) -> {
                InvocationHandler wrapped = factory.create(target, dispatch);
                return (proxy, method, args) -> {
                    if (method.getDeclaringClass() != Object.class) {
                        calls.incrementAndGet();
                    }
                    return wrapped.invoke(proxy, method, args == null ? new Object[0] : args);
                };
            };
        }

        @Override
        public Client enrich(Client client) {
            return (request, options) -> {
                requests.incrementAndGet();
                return client.execute(request, options);
            };
        }

        @Override
        public AsyncClient<Object> enrich(AsyncClient<Object> client) {
            return (request, options, context) -> {
                requests.incrementAndGet();
                return client.execute(request, options, context).thenApply(response -> response);
            };
        }

        @Override
        public Decoder enrich(Decoder decoder) {
            return (response, type) -> {
                decoded.incrementAndGet();
                return decoder.decode(response, type);
            };
        }
    }
}
