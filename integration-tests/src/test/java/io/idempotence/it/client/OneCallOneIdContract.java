package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.equalTo;
import static com.github.tomakehurst.wiremock.client.WireMock.matching;
import static com.github.tomakehurst.wiremock.client.WireMock.post;
import static com.github.tomakehurst.wiremock.client.WireMock.postRequestedFor;
import static com.github.tomakehurst.wiremock.client.WireMock.urlEqualTo;
import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.github.tomakehurst.wiremock.verification.LoggedRequest;
import feign.FeignException;
import feign.InvocationHandlerFactory;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.http.IdempotencyKeyHeader.Style;
import io.idempotence.http.InvalidIdempotencyKeyException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Promise P1, as the journal of the provider shows it: one call, one ID, also between layers of others. Subclasses
 * name the HTTP client.
 */
abstract class OneCallOneIdContract extends LayersContract {
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
    void putAndDeleteCarryAnIdOnlyWhenTheyDeclareIt() {
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
                return pool.submit(call).get(60, TimeUnit.SECONDS);
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
}
