package io.idempotence.client.feign;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import feign.Feign;
import feign.InvocationHandlerFactory.MethodHandler;
import feign.RetryableException;
import feign.Target.HardCodedTarget;
import feign.codec.EncodeException;
import feign.codec.Encoder;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceClientEvent.Result;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.feign.TestServer.Received;
import io.idempotence.client.feign.TestServer.Reply;
import io.idempotence.client.internal.scope.CallScope;
import io.idempotence.http.InvalidIdempotencyKeyException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

/** Promise P1: one call, one ID; two calls never share one. */
class OneCallOneIdTest extends FeignTestBase {
    @Test
    void callersNullHeaderMeansNone() {
        orders().createAs(null);
        assertThat(server.ids().get(0)).matches("\"[0-9a-f-]{36}\"");
    }

    @Test
    void twoHeadersFromTheCallerAreRefused() {
        Orders orders = orders(fast().build(), b -> b.requestInterceptor(t -> t.header("IDEMPOTENCY-KEY", "other")));
        assertThatThrownBy(() -> orders.createAs("mine")).isInstanceOf(InvalidIdempotencyKeyException.class);
        assertThat(server.requests()).isEmpty();
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
    void bracesAndQuotesInAnIdAreNoTemplateExpressions() {
        Orders orders = orders();
        server.respond(Reply.status(503));
        IdempotenceScope.with(IdempotenceId.of("a{b}\"c"), () -> orders.create("x"));
        assertThat(server.ids()).containsExactly("\"a{b}\\\"c\"", "\"a{b}\\\"c\"");
    }

    /** A handler that sends a call twice at once, and takes the response that comes first. */
    private static InvocationHandler hedging(Map<Method, MethodHandler> dispatch, ExecutorService threads) {
        return (proxy, method, args) -> {
            CyclicBarrier together = new CyclicBarrier(2);
            Callable<Object> run = () -> {
                together.await();
                return run(dispatch.get(method), args);
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
                    assertThat(CallScope.current().mayHaveTakenEffect()).isFalse();
                });
            }
            assertThat(events).extracting(IdempotenceClientEvent::result).containsOnly(Result.FAILED);
        } finally {
            threads.shutdownNow();
        }
    }

    /** The provider would refuse the second request as another one under the ID. */
    @Test
    void callThatIsMadeTwiceAtOnceSendsOneBody() {
        Set<Thread> running = ConcurrentHashMap.newKeySet();
        Set<Thread> encoding = ConcurrentHashMap.newKeySet();
        Encoder random = multipartWithARandomBoundary();
        Encoder overlapping = (object, type, template) -> {
            encoding.add(Thread.currentThread());
            while (encoding.size() < 2 && !otherRunWaits(running)) {
                Thread.onSpinWait();
            }
            random.encode(object, type, template);
        };
        ExecutorService threads = Executors.newCachedThreadPool();
        Orders orders = orders(
                fast().build(),
                b -> b.encoder(overlapping).invocationHandlerFactory((target, dispatch) -> (proxy, method, args) -> {
                    Callable<Object> run = () -> {
                        running.add(Thread.currentThread());
                        return run(dispatch.get(method), args);
                    };
                    return threads.invokeAll(List.of(run, run)).get(0).get();
                }));
        try {
            assertTimeoutPreemptively(Duration.ofSeconds(30), () -> orders.create("x"));
        } finally {
            threads.shutdownNow();
        }
        assertThat(server.requests()).hasSize(2);
        assertThat(server.requests().stream().map(Received::body).distinct()).hasSize(1);
        assertThat(server.requests())
                .allSatisfy(request -> assertThat(request.header("Content-Type"))
                        .containsExactly("multipart/form-data; boundary="
                                + request.header("X-Boundary").get(0)));
    }

    @Test
    void callWithoutAnIdThatIsMadeTwiceAtOnceIsEncodedTwiceAtOnce() {
        CyclicBarrier both = new CyclicBarrier(2);
        Encoder overlapping = (object, type, template) -> {
            try {
                both.await(20, TimeUnit.SECONDS);
            } catch (InterruptedException | BrokenBarrierException | TimeoutException e) {
                throw new IllegalStateException(e);
            }
            template.body((String) object);
        };
        ExecutorService threads = Executors.newCachedThreadPool();
        Orders orders = orders(
                fast().enabled(false).build(),
                b -> b.encoder(overlapping).invocationHandlerFactory((target, dispatch) -> (proxy, method, args) -> {
                    Callable<Object> run = () -> run(dispatch.get(method), args);
                    return threads.invokeAll(List.of(run, run)).get(0).get();
                }));
        try {
            assertThat(orders.create("x")).isEqualTo("ok");
        } finally {
            threads.shutdownNow();
        }
        assertThat(server.requests()).hasSize(2);
    }

    private static boolean otherRunWaits(Set<Thread> running) {
        return running.stream()
                .anyMatch(other -> other != Thread.currentThread() && other.getState() == Thread.State.WAITING);
    }

    private static Object run(MethodHandler handler, Object[] args) throws Exception {
        try {
            return handler.invoke(args);
        } catch (Exception e) {
            throw e;
        } catch (Throwable t) {
            throw new AssertionError(t);
        }
    }

    /** An interceptor that was added before sees the body that is sent, and not another one that the encoder would write. */
    @Test
    void interceptorBeforeOursSignsTheBodyThatEachAttemptSends() {
        server.respond(Reply.status(503));
        Orders orders = orders(
                fast().build(),
                b -> b.encoder(multipartWithARandomBoundary())
                        .requestInterceptor(t -> t.header("X-Signed", new String(t.body(), StandardCharsets.UTF_8))));
        orders.create("x");
        assertThat(server.requests()).hasSize(2);
        assertThat(server.requests()).allSatisfy(request -> {
            assertThat(request.header("X-Signed")).containsExactly(request.body());
            String boundary = request.header("X-Boundary").get(0);
            assertThat(request.body()).isEqualTo(boundary + "x");
            assertThat(request.header("Content-Type")).containsExactly("multipart/form-data; boundary=" + boundary);
        });
        assertThat(server.requests().stream().map(Received::body).distinct()).hasSize(1);
    }

    private static Encoder multipartWithARandomBoundary() {
        return (object, type, template) -> {
            String boundary = UUID.randomUUID().toString();
            template.header("Content-Type", "multipart/form-data; boundary=" + boundary);
            template.header("X-Boundary", boundary);
            template.body(boundary + object);
        };
    }

    @Test
    void bodyThatCanBeReadOnceIsSentByEachAttempt() {
        server.respond(Reply.status(503), Reply.refusal("in-progress", 409));
        AtomicBoolean read = new AtomicBoolean();
        Orders orders = orders(
                fast().build(),
                b -> b.encoder((object, type, template) -> {
                    if (!read.compareAndSet(false, true)) {
                        throw new EncodeException("the stream has been read");
                    }
                    template.body("once");
                }));
        assertThat(orders.create("x")).isEqualTo("ok");
        assertThat(server.requests().stream().map(Received::body)).containsExactly("once", "once", "once");
    }

    /** What it writes to the URL is not copied. */
    @Test
    void encoderThatWritesToTheUrlRunsForEachAttempt() {
        server.respond(Reply.status(503));
        Orders orders = orders(
                fast().build(),
                b -> b.encoder((object, type, template) -> {
                    template.uri("/orders/2");
                    template.body(String.valueOf(object));
                }));
        orders.create("x");
        assertThat(server.requests().stream().map(Received::path)).containsExactly("/orders/2", "/orders/2");
    }

    /** A caller that mirrors a call to a second service passes the same arguments on; the second service has a call of its own. */
    @Test
    void callThatAHandlerPassesToAnotherClientOfTheBuilderHasAnIdOfItsOwn() {
        Map<String, Map<Method, MethodHandler>> dispatches = new ConcurrentHashMap<>();
        Feign.Builder builder = Feign.builder().invocationHandlerFactory((target, dispatch) -> {
            dispatches.put(target.name(), dispatch);
            return (proxy, method, args) -> {
                dispatches.get("mirror").get(method).invoke(args);
                return dispatch.get(method).invoke(args);
            };
        });
        Feign feign = IdempotentFeign.install(builder, fast().build()).build();
        feign.newInstance(new HardCodedTarget<>(Orders.class, "mirror", server.url()));
        Orders orders = feign.newInstance(new HardCodedTarget<>(Orders.class, "orders", server.url()));
        orders.create("x");
        assertThat(server.ids()).hasSize(2).doesNotHaveDuplicates();
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
