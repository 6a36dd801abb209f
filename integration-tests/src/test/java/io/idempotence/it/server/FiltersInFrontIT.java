package io.idempotence.it.server;

import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.idempotence.FailureRule;
import io.idempotence.it.container.Http;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.ServletServer.Handler;
import io.idempotence.it.container.UndertowServer;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.FilterRegistration;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.http.HttpResponse;
import java.util.EnumSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.assertj.core.api.SoftAssertions;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Filters of others that wrap the response, in front of ours and behind it: callers see what they see without ours. */
class FiltersInFrontIT extends FilterTestBase {
    /** How a handler responds. */
    enum Way {
        AT_ONCE,
        BY_WRITER,
        FORWARDS,
        PAIR_THEN_COMPLETES,
        CONTEXT_THEN_COMPLETES,
        CAPTURED_THEN_COMPLETES,
        PAIR_THEN_DISPATCHES,
        CONTEXT_THEN_DISPATCHES,
        FORWARDS_AND_DISPATCHES,
        REDIRECTS,
        SENDS_ERROR
    }

    private void respond(Way way, HttpServletRequest request, HttpServletResponse response)
            throws IOException, ServletException {
        if (request.getDispatcherType() == DispatcherType.ERROR && way != Way.SENDS_ERROR) {
            respond(response, 500, "error");
            return;
        }
        boolean again = request.getDispatcherType() != DispatcherType.REQUEST;
        switch (way) {
            case AT_ONCE -> respond(response, 201, "paid");
            case BY_WRITER -> {
                response.setStatus(201);
                response.setContentType("text/plain;charset=utf-8");
                response.getWriter().print("paid \u00fc");
            }
            case FORWARDS -> {
                if (again) {
                    respond(response, 201, "forwarded");
                } else {
                    request.getServletContext().getRequestDispatcher("/view").forward(request, response);
                }
            }
            case PAIR_THEN_COMPLETES -> complete(request.startAsync(request, response));
            case CONTEXT_THEN_COMPLETES -> complete(request.startAsync());
            case CAPTURED_THEN_COMPLETES -> {
                AsyncContext async = request.startAsync();
                later(request, () -> {
                    respond(response, 201, "paid later");
                    async.complete();
                });
            }
            case PAIR_THEN_DISPATCHES ->
                dispatch(again, request, response, () -> request.startAsync(request, response));
            case CONTEXT_THEN_DISPATCHES -> dispatch(again, request, response, request::startAsync);
            case FORWARDS_AND_DISPATCHES -> {
                if (request.getDispatcherType() == DispatcherType.REQUEST) {
                    request.getRequestDispatcher("/view").forward(request, response);
                } else if (request.getDispatcherType() == DispatcherType.FORWARD) {
                    AsyncContext async = request.startAsync(request, response);
                    later(request, async::dispatch);
                } else {
                    respond(response, 201, "dispatched to " + request.getRequestURI());
                }
            }
            case REDIRECTS -> response.sendRedirect("/elsewhere");
            case SENDS_ERROR -> {
                if (again) {
                    respond(response, 409, "page");
                } else {
                    response.sendError(409, "conflict");
                }
            }
        }
    }

    private interface Starter {
        AsyncContext start();
    }

    private interface Writing {
        void write() throws IOException;
    }

    private void complete(AsyncContext async) {
        later(async.getRequest(), () -> {
            respond(async, 201, "paid later");
            async.complete();
        });
    }

    private void dispatch(boolean again, HttpServletRequest request, HttpServletResponse response, Starter starter)
            throws IOException {
        if (again) {
            respond(response, 201, "paid by dispatch of " + request.getRequestURI());
        } else {
            AsyncContext async = starter.start();
            later(request, async::dispatch);
        }
    }

    static Stream<Arguments> stacks() {
        return Stream.of(OtherFilter.values())
                .flatMap(other -> Stream.of(Arguments.of(other, true), Arguments.of(other, false)));
    }

    @ParameterizedTest(name = "{0}, in front: {1}")
    @MethodSource("stacks")
    void callersSeeWhatTheySeeWithoutTheFilter(OtherFilter other, boolean front) {
        errorPage = "/error";
        Handler handler = (request, response) -> respond(Way.valueOf(request.getHeader("X-Way")), request, response);
        ServletServer without = start(handler, context -> {
            outermost(context);
            other.add(context);
        });
        Idempotence idempotence = idempotence();
        ServletServer server = start(handler, context -> {
            outermost(context);
            if (front) {
                other.add(context);
            }
            IdempotenceFilter.install(context, idempotence);
            if (!front) {
                other.add(context);
            }
        });
        SoftAssertions.assertSoftly(softly -> {
            for (Way way : Way.values()) {
                softly.check(() -> assertSameWithAndWithout(way, without, server));
            }
        });
    }

    private void assertSameWithAndWithout(Way way, ServletServer without, ServletServer server) {
        HttpResponse<byte[]> plain = call(without, way);
        runs.set(0);
        HttpResponse<byte[]> first = call(server, way);
        boolean lost = (plain.body().length == 0 && way != Way.REDIRECTS)
                || text(plain).equals("error");
        // On Tomcat 11, a forward suspends the response of a filter that has held its body back;
        // ours gives it all the same.
        if (!(way == Way.FORWARDS && lost)) {
            assertSame(way, plain, first);
            assertThat(first.headers().allValues("X-Held"))
                    .as("%s", way)
                    .isEqualTo(plain.headers().allValues("X-Held"));
        }
        AtomicReference<HttpResponse<byte[]>> second = new AtomicReference<>();
        Awaitility.await().until(() -> {
            second.set(call(server, way));
            return !"in-progress".equals(Http.refusal(second.get()));
        });
        if (!lost) {
            assertThat(runs).as("%s", way).hasValue(1);
            assertThat(replayed(second.get())).as("%s", way).isTrue();
            assertSame(way, first, second.get());
        }
    }

    private HttpResponse<byte[]> call(ServletServer server, Way way) {
        return Http.post(server.uri("/payments"), id + way, "{}", "X-Way", way.name());
    }

    /** Lets handlers go on in other threads when every filter has returned. */
    private static void outermost(ServletContext context) {
        FilterRegistration.Dynamic filter = context.addFilter("outermost", (request, response, chain) -> {
            CountDownLatch returned = new CountDownLatch(1);
            request.setAttribute("returned", returned);
            try {
                chain.doFilter(request, response);
            } finally {
                returned.countDown();
            }
        });
        filter.setAsyncSupported(true);
        filter.addMappingForUrlPatterns(EnumSet.of(DispatcherType.REQUEST), true, "/*");
    }

    private void later(ServletRequest request, Writing task) {
        CountDownLatch returned = (CountDownLatch) request.getAttribute("returned");
        executor.execute(() -> {
            await(returned);
            try {
                task.write();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        });
    }

    private static void assertSame(Object what, HttpResponse<byte[]> expected, HttpResponse<byte[]> actual) {
        assertThat(actual.statusCode() + " " + text(actual))
                .as("%s", what)
                .isEqualTo(expected.statusCode() + " " + text(expected));
        assertThat(actual.headers().allValues("Content-Type"))
                .as("%s", what)
                .isEqualTo(expected.headers().allValues("Content-Type"));
    }

    @ParameterizedTest
    @EnumSource(OtherFilter.class)
    void duplicateThatWaitsBehindAFilterGetsTheResponse(OtherFilter other) throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch mayEnd = new CountDownLatch(1);
        Idempotence idempotence = idempotence();
        ServletServer server = start(
                (request, response) -> {
                    started.countDown();
                    await(mayEnd);
                    respond(response, 201, "paid");
                },
                context -> {
                    other.add(context);
                    IdempotenceFilter.install(context, idempotence);
                });
        CompletableFuture<HttpResponse<byte[]>> first =
                Http.sendAsync(Http.request("POST", server.uri("/payments"), id, "{}"));
        await(started);
        CompletableFuture<HttpResponse<byte[]>> duplicate =
                Http.sendAsync(Http.request("POST", server.uri("/payments"), id, "{}", "Prefer", "wait=9"));
        Awaitility.await().until(() -> events.contains(IdempotenceEvent.IN_PROGRESS));
        mayEnd.countDown();
        assertSame(other, first.get(20, TimeUnit.SECONDS), duplicate.get(20, TimeUnit.SECONDS));
        assertThat(replayed(duplicate.get())).isTrue();
        assertThat(text(duplicate.get())).isEqualTo("paid");
        assertThat(runs).hasValue(1);
    }

    private static void await(CountDownLatch latch) {
        try {
            assertThat(latch.await(30, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void whatIsWrittenThroughTwoResponsesIsNotReplayedInPart() {
        Idempotence idempotence = idempotence();
        ServletServer server = start(
                (request, response) -> {
                    respond(response, 201, "one ");
                    AsyncContext async = request.startAsync();
                    later(request, () -> {
                        async.getResponse().getOutputStream().print("two");
                        async.complete();
                    });
                },
                context -> {
                    outermost(context);
                    OtherFilter.PASSES_THROUGH.add(context);
                    IdempotenceFilter.install(context, idempotence);
                });
        assertThat(text(call(server))).isEqualTo("one two");
        assertThat(Http.refusal(awaitEnd(server))).isEqualTo("result-unavailable");
        assertThat(runs).hasValue(1);
    }

    @Test
    void filterRegisteredForRequestsOnlyReplaysTheErrorPage() {
        errorPage = "/error";
        Idempotence idempotence = idempotence();
        ServletServer server = start(
                (request, response) -> {
                    if (request.getDispatcherType() == DispatcherType.ERROR) {
                        respond(response, 400, "page " + System.nanoTime());
                    } else {
                        response.sendError(400, "bad");
                    }
                },
                context -> {
                    FilterRegistration.Dynamic filter = context.addFilter(
                            "by hand", IdempotenceFilter.builder(idempotence).build());
                    filter.setAsyncSupported(true);
                    filter.addMappingForUrlPatterns(EnumSet.of(DispatcherType.REQUEST), true, "/*");
                });
        HttpResponse<byte[]> first = call(server);
        assertThat(text(first)).startsWith("page ");
        assertSameResponse(first, call(server));
        assertThat(runs).hasValue(1);
    }

    private static void startsAsync(ServletContext context) {
        inFront(context, (request, response, chain) -> {
            request.startAsync().setTimeout(0);
            chain.doFilter(request, response);
        });
    }

    @ParameterizedTest
    @ValueSource(ints = {10, 500_000})
    void requestAfterAReplayThatNobodyCompletesIsNotHeldUp(int size) {
        Idempotence idempotence = idempotence();
        ServletServer server = start(
                (request, response) -> {
                    respond(response, 201, "x".repeat(size));
                    request.getAsyncContext().complete();
                },
                context -> {
                    startsAsync(context);
                    IdempotenceFilter.install(context, idempotence);
                });
        HttpResponse<byte[]> first = call(server);
        awaitReplay(server, first);
        assertSameResponse(first, call(server));
        assertThat(refusal(Http.post(server.uri("/p"), null, "{}"))).isEqualTo("key-missing");
        assertSameResponse(first, call(server));
        assertThat(runs).hasValue(1);
    }

    @Test
    void requestThatIsLetThroughGetsNoResponseBeforeThatOfItsHandler() {
        Idempotence idempotence = idempotence();
        ServletServer server = start(
                (request, response) -> later(request, () -> {
                    respond(response, 201, "paid later");
                    request.getAsyncContext().complete();
                }),
                context -> {
                    outermost(context);
                    startsAsync(context);
                    IdempotenceFilter.builder(idempotence).keyOptional().build().install(context);
                });
        assertThat(Http.post(server.uri("/p"), null, "{}").statusCode()).isEqualTo(201);
    }

    @Test
    @DisplayName("P6: a filter in front that proceeds again after a failure runs nothing without a claim")
    void aFilterInFrontThatProceedsAgainRunsNothingUnprotected() {
        // Tomcat runs the servlet at once then, without any filter. Undertow has Servlet 6.0.
        assumeThat(container == Container.JETTY || !ServletServer.isServlet61()).isTrue();
        ServletServer.Starter starter = container == Container.JETTY ? container : UndertowServer::start;
        policy = IdempotencePolicy.builder()
                .failureRule(FailureRule.RELEASE_IF_NOTHING_TOOK_EFFECT)
                .build();
        Idempotence idempotence = idempotence();
        ServletServer server = start(
                starter,
                (request, response) -> {
                    if (runs.get() == 1) {
                        throw new IllegalStateException("charged, and then the connection broke");
                    }
                    respond(response, 201, "charged again");
                },
                context -> {
                    inFront(context, (request, response, chain) -> {
                        try {
                            chain.doFilter(request, response);
                        } catch (ServletException | IllegalStateException e) {
                            chain.doFilter(request, response);
                        }
                    });
                    IdempotenceFilter.install(context, idempotence);
                });
        assertThat(refusal(Http.post(server.uri("/p"), id, ""))).isEqualTo("outcome-unknown");
        assertThat(runs).hasValue(1);
    }
}
