package io.idempotence.client.feign;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import feign.FeignException;
import feign.InvocationHandlerFactory;
import feign.InvocationHandlerFactory.MethodHandler;
import feign.RequestInterceptor;
import feign.RetryableException;
import feign.Target.HardCodedTarget;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceClientEvent.Result;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.feign.TestServer.Received;
import io.idempotence.client.feign.TestServer.Reply;
import io.idempotence.client.internal.scope.CallScope;
import io.idempotence.http.IdempotencyKeyHeader;
import io.idempotence.http.InvalidIdempotencyKeyException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Promise P1: one call, one ID; two calls never share one. */
class OneCallOneIdTest extends FeignTestBase {
    @Test
    void everyAttemptCarriesTheSameQuotedIdAndItsNumber() {
        server.answer(Reply.status(503), Reply.status(500), Reply.ok("done"));

        assertThat(orders().create("x")).isEqualTo("done");

        assertThat(server.ids()).hasSize(3).allMatch(id -> id.matches("\"[0-9a-f-]{36}\""));
        assertThat(new HashSet<>(server.ids())).hasSize(1);
        assertThat(server.requests().stream()
                        .map(r -> r.header("Idempotency-Attempt").get(0)))
                .containsExactly("1", "2", "3");
    }

    @Test
    void twoCallsCarryTwoIds() {
        Orders orders = orders();
        orders.create("x");
        orders.create("x");
        assertThat(new HashSet<>(server.ids())).hasSize(2);
    }

    @Test
    void bareStyleWritesNoQuotes() {
        orders(fast().headerStyle(IdempotencyKeyHeader.Style.BARE).build()).create("x");
        assertThat(server.ids().get(0)).matches("[0-9a-f-]{36}");
    }

    @Test
    void callWithoutArgumentsKeepsItsId() {
        server.answer(Reply.status(503));
        orders().tick();
        assertThat(server.ids()).hasSize(2);
        assertThat(new HashSet<>(server.ids())).hasSize(1);
    }

    @Test
    void defaultMethodOpensNoCallButEachCallInItDoes() {
        server.answer(Reply.status(503));
        assertThat(orders().twice()).isEqualTo("okok");
        assertThat(server.requests().stream().map(Received::body)).containsExactly("a", "a", "b");
        assertThat(server.ids().get(0))
                .isEqualTo(server.ids().get(1))
                .isNotEqualTo(server.ids().get(2));
        assertThat(events).hasSize(2);
    }

    @Test
    void callersHeaderComesBeforeScopeAndGenerator() {
        server.answer(Reply.status(503));
        Orders orders = orders();
        IdempotenceScope.with(IdempotenceId.of("scoped"), () -> orders.createAs("mine-1"));
        assertThat(server.ids()).containsExactly("mine-1", "mine-1");
    }

    @Test
    void callersNullHeaderMeansNone() {
        orders().createAs(null);
        assertThat(server.ids().get(0)).matches("\"[0-9a-f-]{36}\"");
    }

    @ParameterizedTest
    @ValueSource(strings = {"a\r\nX-Evil: 1", "a\nb", "\"open", "has space", "ü"})
    void callersHeaderThatIsNoIdIsRefusedBeforeSending(String key) {
        Orders orders = orders();
        assertThatThrownBy(() -> orders.createAs(key)).isInstanceOf(InvalidIdempotencyKeyException.class);
        assertThat(server.requests()).isEmpty();
    }

    @Test
    void twoHeadersFromTheCallerAreRefused() {
        Orders orders = orders(fast().build(), b -> b.requestInterceptor(t -> t.header("IDEMPOTENCY-KEY", "other")));
        assertThatThrownBy(() -> orders.createAs("mine")).isInstanceOf(InvalidIdempotencyKeyException.class);
        assertThat(server.requests()).isEmpty();
    }

    @Test
    void naiveInterceptorBeforeOursCannotChangeTheIdBetweenAttempts() {
        server.answer(Reply.status(503), Reply.status(503));
        RequestInterceptor naive =
                t -> t.header("Idempotency-Key", UUID.randomUUID().toString());
        orders(fast().build(), b -> b.requestInterceptor(naive)).create("x");
        assertThat(server.ids()).hasSize(3);
        assertThat(new HashSet<>(server.ids())).hasSize(1);
    }

    @Test
    void interceptorAfterOursThatAddsAnIdIsAnErrorBeforeSending() {
        Orders orders = target(IdempotentFeign.install(feign.Feign.builder(), fast().build())
                .requestInterceptor(
                        t -> t.header("Idempotency-Key", UUID.randomUUID().toString())));
        assertThatThrownBy(() -> orders.create("x"))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("another interceptor");
        assertThat(server.requests()).isEmpty();
    }

    @Test
    void scopeGivesItsIdToTheCallAndToTheCallersRetryOfIt() {
        Orders orders = orders();
        server.answer(Reply.status(400));
        IdempotenceScope.with(IdempotenceId.of("job-1"), () -> {
            assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignException.BadRequest.class);
            orders.create("x");
            orders.list();
        });
        assertThat(server.ids()).containsExactly("\"job-1\"", "\"job-1\"", "");
    }

    @Test
    void bracesAndQuotesInAnIdAreNoTemplateExpressions() {
        Orders orders = orders();
        server.answer(Reply.status(503));
        IdempotenceScope.with(IdempotenceId.of("a{b}\"c"), () -> orders.create("x"));
        assertThat(server.ids()).containsExactly("\"a{b}\\\"c\"", "\"a{b}\\\"c\"");
    }

    @Test
    void scopeRefusesASecondDifferentCall() {
        Orders orders = orders();
        IdempotenceScope.with(IdempotenceId.of("job-1"), () -> {
            orders.create("x");
            assertThatThrownBy(orders::tick)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("own IdempotenceScope");
        });
        assertThat(server.requests()).hasSize(1);
    }

    @Test
    void callMadeByAnInterceptorOfACallDoesNotTakeItsScope() {
        AtomicReference<Orders> inner = new AtomicReference<>();
        Orders outer = orders(
                fast().build(), b -> b.requestInterceptor(t -> inner.get().tick()));
        inner.set(orders());
        IdempotenceScope.with(IdempotenceId.of("job-1"), () -> outer.create("x"));
        assertThat(server.requests().stream().map(Received::path)).containsExactly("/tick", "/orders");
        assertThat(server.ids().get(0)).isNotEqualTo("\"job-1\"");
        assertThat(server.ids().get(1)).isEqualTo("\"job-1\"");
    }

    @Test
    void nestedCallOfTheSameClientHasItsOwnIdAndTheOuterOneKeepsIts() {
        AtomicReference<Orders> self = new AtomicReference<>();
        server.answer(Reply.ok("inner-1"), Reply.status(503), Reply.ok("inner-2"), Reply.ok("outer"));
        Orders orders = orders(
                fast().build(),
                b -> b.requestInterceptor(t -> {
                    if (t.path().equals("/orders")) {
                        self.get().tick();
                    }
                }));
        self.set(orders);
        assertThat(orders.create("x")).isEqualTo("outer");
        assertThat(server.requests().stream().map(Received::path))
                .containsExactly("/tick", "/orders", "/tick", "/orders");
        List<String> ids = server.ids();
        assertThat(ids.get(1)).isEqualTo(ids.get(3));
        assertThat(new HashSet<>(ids)).hasSize(3);
    }

    @Test
    void retryBetweenProxyAndOursKeepsTheId() {
        server.answer(Reply.status(400), Reply.status(400));
        InvocationHandlerFactory retrying = (target, dispatch) -> (proxy, method, args) -> {
            for (int i = 0; ; i++) {
                try {
                    return dispatch.get(method).invoke(args);
                } catch (FeignException e) {
                    if (i == 2) {
                        throw e;
                    }
                }
            }
        };
        assertThat(orders(fast().build(), b -> b.invocationHandlerFactory(retrying))
                        .create("x"))
                .isEqualTo("ok");
        assertThat(server.ids()).hasSize(3);
        assertThat(new HashSet<>(server.ids())).hasSize(1);
        assertThat(server.requests().get(2).header("Idempotency-Attempt")).containsExactly("3");
        assertThat(events).hasSize(1);
    }

    @Test
    void hopToAnotherThreadKeepsIdAndScope() throws Exception {
        ExecutorService other = Executors.newSingleThreadExecutor();
        try {
            InvocationHandlerFactory hopping = (target, dispatch) -> {
                InvocationHandler usual = new InvocationHandlerFactory.Default().create(target, dispatch);
                return (proxy, method, args) -> other.submit((Callable<Object>) () -> {
                            try {
                                return usual.invoke(proxy, method, args);
                            } catch (Exception e) {
                                throw e;
                            } catch (Throwable t) {
                                throw new AssertionError(t);
                            }
                        })
                        .get();
            };
            Orders orders = orders(fast().build(), b -> b.invocationHandlerFactory(hopping));
            server.answer(Reply.status(503));
            orders.create("x");
            server.answer(Reply.status(503));
            IdempotenceScope.with(IdempotenceId.of("job-1"), () -> orders.create("y"));
            assertThat(server.ids()).hasSize(4);
            assertThat(server.ids().get(0)).isEqualTo(server.ids().get(1)).isNotEqualTo("\"job-1\"");
            assertThat(server.ids().subList(2, 4)).containsExactly("\"job-1\"", "\"job-1\"");
        } finally {
            other.shutdownNow();
        }
    }

    /** A handler that sends a call twice at once, and takes the answer that comes first. */
    private static InvocationHandler hedging(Map<Method, MethodHandler> dispatch, ExecutorService threads) {
        return (proxy, method, args) -> {
            CyclicBarrier together = new CyclicBarrier(2);
            Callable<Object> run = () -> {
                together.await();
                try {
                    return dispatch.get(method).invoke(args);
                } catch (Exception e) {
                    throw e;
                } catch (Throwable t) {
                    throw new AssertionError(t);
                }
            };
            try {
                return threads.invokeAll(List.of(run, run)).get(0).get();
            } catch (ExecutionException e) {
                throw e.getCause();
            }
        };
    }

    @Test
    void callThatIsMadeTwiceAtOnceHasOneIdAndLeavesNoDoubtInItsScope() {
        ExecutorService threads = Executors.newCachedThreadPool();
        Orders reached = orders(
                fast().build(), b -> b.invocationHandlerFactory((target, dispatch) -> hedging(dispatch, threads)));
        Orders refused = refused(
                fast().maxAttempts(1).build(),
                b -> b.invocationHandlerFactory((target, dispatch) -> hedging(dispatch, threads)));
        try {
            reached.create("x");
            assertThat(new HashSet<>(server.ids())).hasSize(1);
            events.clear();
            for (int i = 0; i < 300; i++) {
                IdempotenceScope.with(IdempotenceId.of("job-" + i), () -> {
                    assertThatThrownBy(() -> refused.create("x")).isExactlyInstanceOf(RetryableException.class);
                    assertThat(CallScope.current().isInDoubt()).isFalse();
                });
            }
            assertThat(events).extracting(IdempotenceClientEvent::result).containsOnly(Result.FAILED);
        } finally {
            threads.shutdownNow();
        }
    }

    @Test
    void bodyAndContentTypeOfTheFirstAttemptAreSentAgain() {
        AtomicInteger clock = new AtomicInteger();
        server.answer(Reply.status(503));
        orders(
                        fast().build(),
                        b -> b.encoder((object, type, template) -> {
                            int now = clock.incrementAndGet();
                            template.body("part-" + now);
                            template.header("Content-Type", "multipart/form-data; boundary=" + now);
                        }))
                .create("x");
        assertThat(clock).hasValue(2);
        assertThat(server.requests().stream().map(Received::body)).containsExactly("part-1", "part-1");
        assertThat(server.requests().get(1).header("Content-Type")).containsExactly("multipart/form-data; boundary=1");
    }

    @Test
    void onlyProtectedCallsCarryAnId() {
        Orders orders = orders();
        orders.put("x");
        orders.unprotected("x");
        orders.list();
        orders.protectedPut("x");
        assertThat(server.ids().subList(0, 3)).containsExactly("", "", "");
        assertThat(server.ids().get(3)).isNotEmpty();
    }

    @Test
    void twoHundredConcurrentCallsHaveTwoHundredIds() throws Exception {
        Orders orders = orders();
        for (int i = 0; i < 100; i++) {
            server.answer(Reply.status(503), Reply.ok("ok"));
        }
        ExecutorService callers = Executors.newFixedThreadPool(16);
        try {
            List<Callable<String>> calls = new ArrayList<>();
            for (int i = 0; i < 200; i++) {
                String body = "call-" + i;
                calls.add(() -> orders.create(body));
            }
            int done = 0;
            for (Future<String> call : callers.invokeAll(calls, 60, TimeUnit.SECONDS)) {
                try {
                    call.get();
                } catch (ExecutionException e) {
                    // three 503 in a row are possible, the ID is what counts here
                    assertThat(e.getCause()).isInstanceOf(FeignException.class);
                }
                done++;
            }
            assertThat(done).isEqualTo(200);
        } finally {
            callers.shutdownNow();
        }
        assertThat(new HashSet<>(server.ids())).hasSize(200);
        assertThat(server.requests().stream().map(r -> r.id() + r.body()).distinct())
                .hasSize(200);
    }

    @Test
    void proxiesCompareByTheirTargets() {
        Orders a = orders();
        Orders b = orders();
        Orders c = IdempotentFeign.install(feign.Feign.builder(), fast().build())
                .target(new HardCodedTarget<>(Orders.class, "other", server.url()));
        assertThat(a).isEqualTo(b).hasSameHashCodeAs(b).isNotEqualTo(c);
        assertThat(a.equals(null)).isFalse();
        assertThat(a.equals("orders")).isFalse();
        assertThat(a.toString()).contains("orders");
        assertThat(server.requests()).isEmpty();
    }

    /**
     * Feign's default client looks for Content-Encoding, and means any spelling: else the header would say gzip and the body
     * would not be.
     */
    @Test
    void encodingInAnotherSpellingIsStillSeenByTheClient() {
        orders(fast().build(), b -> b.requestInterceptor(template -> template.header("content-encoding", "gzip")))
                .create("x");
        assertThat(server.requests().get(0).body()).startsWith("\u001f");
    }
}
