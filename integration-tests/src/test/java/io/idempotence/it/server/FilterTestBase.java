package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.container.Http.request;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.it.container.Container;
import io.idempotence.it.container.Http;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.ServletServer.Handler;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.redis.RedisOfAClass;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.servlet.IdempotenceFilterBuilder;
import io.idempotence.server.servlet.RequestSettings;
import io.idempotence.server.storage.IdempotenceStorage;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterRegistration;
import jakarta.servlet.MultipartConfigElement;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletRegistration;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The base of tests with a filter, a handler and a caller, in every container, over sockets, on a real Redis. Each subclass holds {@code
 * IdempotenceFilter} to some rules of the protocol.
 */
@ParameterizedClass
@MethodSource("io.idempotence.it.container.Container#available")
abstract class FilterTestBase {
    /**
     * A timeout of asynchronous processing that a test waits for. Jetty loses one that ends before the thread that scheduled it goes on, and
     * the request then hangs, so it is longer than a busy machine holds up a thread.
     */
    static final long SHORT_TIMEOUT_MILLIS = 500;

    @RegisterExtension
    static final RedisOfAClass redis = new RedisOfAClass();

    final AtomicInteger runs = new AtomicInteger();
    final List<IdempotenceEvent> events = new CopyOnWriteArrayList<>();
    final ExecutorService executor = Executors.newCachedThreadPool();
    final List<AutoCloseable> toClose = new ArrayList<>();
    final String id = UUID.randomUUID().toString();
    IdempotencePolicy policy;
    String errorPage;
    MultipartConfigElement multipart;
    boolean compressing;

    @Parameter
    Container container;

    @BeforeEach
    void defaults() {
        policy = IdempotencePolicy.defaults();
    }

    @AfterEach
    void closeAll() throws Exception {
        for (int i = toClose.size() - 1; i >= 0; i--) {
            toClose.get(i).close();
        }
        executor.shutdownNow();
        assertThat(executor.awaitTermination(60, TimeUnit.SECONDS)).isTrue();
    }

    static IdempotenceStorage redisStorage() {
        return redis.connect();
    }

    Idempotence idempotence() {
        return idempotence(redisStorage());
    }

    Idempotence idempotence(IdempotenceStorage storage) {
        Idempotence idempotence = Idempotence.builder(storage)
                .namespace("t-" + UUID.randomUUID())
                .policy(policy)
                .listener((event, which) -> events.add(event))
                .build();
        toClose.add(idempotence);
        return idempotence;
    }

    ServletServer serve(Handler handler) {
        return serve(handler, filter -> filter);
    }

    ServletServer serve(Handler handler, UnaryOperator<IdempotenceFilterBuilder> options) {
        return serve(idempotence(), handler, options);
    }

    ServletServer serve(Idempotence idempotence, Handler handler, UnaryOperator<IdempotenceFilterBuilder> options) {
        return start(
                handler,
                context -> options.apply(IdempotenceFilter.builder(idempotence))
                        .build()
                        .install(context));
    }

    ServletServer start(Handler handler, Consumer<ServletContext> filters) {
        ServletServer.Starter starter = compressing ? container.compressing() : container;
        ServletServer server = starter.start(
                context -> {
                    filters.accept(context);
                    ServletRegistration.Dynamic servlet =
                            context.addServlet("handler", ServletServer.servlet(counted(handler)));
                    servlet.setAsyncSupported(true);
                    servlet.addMapping("/*");
                    if (multipart != null) {
                        servlet.setMultipartConfig(multipart);
                    }
                },
                errorPage);
        toClose.add(server);
        return server;
    }

    /** Adds a filter that sees each request before ours. */
    static void inFront(ServletContext context, Filter filter) {
        FilterRegistration.Dynamic front = context.addFilter("front", filter);
        front.setAsyncSupported(true);
        front.addMappingForUrlPatterns(EnumSet.of(DispatcherType.REQUEST), true, "/*");
    }

    /** A server in which a filter sees each request before ours. */
    ServletServer serveBehind(Filter inFront, Handler handler) {
        Idempotence idempotence = idempotence();
        return start(handler, context -> {
            inFront(context, inFront);
            IdempotenceFilter.install(context, idempotence);
        });
    }

    /** A server in which a filter in front of ours has read the parameters of a form before ours looks at it. */
    ServletServer serveBehindAParserOfForms(Handler handler) {
        return serveBehind(
                (request, response, chain) -> {
                    assertThat(request.getParameter("a")).isNotNull();
                    chain.doFilter(request, response);
                },
                handler);
    }

    Handler counted(Handler handler) {
        return (request, response) -> {
            if (request.getDispatcherType() == DispatcherType.REQUEST) {
                runs.incrementAndGet();
            }
            handler.handle(request, response);
        };
    }

    static void respond(HttpServletResponse response, int status, String body) throws IOException {
        response.setStatus(status);
        response.setContentType("text/plain;charset=utf-8");
        response.getOutputStream().write(body.getBytes(StandardCharsets.UTF_8));
    }

    static void respond(AsyncContext async, int status, String body) {
        try {
            respond((HttpServletResponse) async.getResponse(), status, body);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    HttpResponse<byte[]> call(ServletServer server) {
        return post(server.uri("/payments"), id, "{\"amount\":5}");
    }

    /** The first attempt. It runs, although the container may cut the connection instead of responding. */
    void callThatMayBeCut(ServletServer server) {
        try {
            call(server);
        } catch (UncheckedIOException theContainerCutIt) {
            assertThat(runs).hasValue(1);
        }
    }

    /** Calls twice behind a filter: the first response has the body, and its replay is the same. */
    void assertReplayedBehind(Filter inFront, String body, Handler handler) {
        ServletServer server = serveBehind(inFront, handler);
        HttpResponse<byte[]> first = call(server);
        assertThat(text(first)).isEqualTo(body);
        assertSameResponse(first, call(server));
    }

    static RequestSettings with(IdempotencePolicy policy, RequestSettings settings) {
        return new RequestSettings(settings.isProtected(), settings.requiresId(), policy, settings.maxWait());
    }

    void assertSameResponse(HttpResponse<byte[]> first, HttpResponse<byte[]> second) {
        assertThat(replayed(first)).isFalse();
        assertThat(replayed(second)).isTrue();
        assertThat(second.statusCode()).isEqualTo(first.statusCode());
        assertThat(second.body()).isEqualTo(first.body());
        for (String name : List.of("Content-Type", "Location", "ETag", "Link", "Cache-Control", "Content-Language")) {
            assertThat(second.headers().allValues(name))
                    .as(name)
                    .isEqualTo(first.headers().allValues(name));
        }
    }

    /** Sends a request until its handler has started. One whose claim took longer than a short lease is refused. */
    static CompletableFuture<HttpResponse<byte[]>> sendUntil(
            CountDownLatch started, Supplier<CompletableFuture<HttpResponse<byte[]>>> send) {
        AtomicReference<CompletableFuture<HttpResponse<byte[]>>> sent = new AtomicReference<>(send.get());
        await().until(() -> {
            if (sent.get().isDone()) {
                sent.set(send.get());
            }
            return started.getCount() == 0;
        });
        return sent.get();
    }

    /** The first response that does not say that the first attempt still runs. */
    HttpResponse<byte[]> awaitEnd(ServletServer server) {
        AtomicReference<HttpResponse<byte[]>> response = new AtomicReference<>();
        AtomicBoolean wasCut = new AtomicBoolean();
        await().until(() -> {
            try {
                response.set(call(server));
            } catch (UncheckedIOException e) {
                // A container may close the connection of the attempt before while this one is on its way;
                // never twice in a row.
                assertThat(wasCut.getAndSet(true))
                        .withFailMessage("cut again: %s", e)
                        .isFalse();
                return false;
            }
            wasCut.set(false);
            return !"in-progress".equals(refusal(response.get()));
        });
        return response.get();
    }

    void awaitReplay(ServletServer server, HttpResponse<byte[]> first) {
        assertSameResponse(first, awaitEnd(server));
    }

    static String text(HttpServletRequest request) throws IOException {
        return new String(request.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    }

    static String text(HttpResponse<byte[]> response) {
        return Http.text(response);
    }
}
