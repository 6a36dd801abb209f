package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.container.Http.text;
import static io.idempotence.it.wire.Latches.awaitLatch;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.idempotence.FailureRule;
import io.idempotence.it.container.Container;
import io.idempotence.it.container.Http;
import io.idempotence.it.container.ServletServer;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.FilterRegistration;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Collections;
import java.util.EnumSet;
import java.util.Enumeration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.web.filter.ShallowEtagHeaderFilter;

/** Filters in front that start asynchronous processing, wrap the response or proceed twice. {@code FilterMatrixIT} has those in common use. */
class FiltersInFrontIT extends FilterTestBase {
    private interface Writing {
        void write() throws IOException;
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
            awaitLatch(returned);
            try {
                task.write();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        });
    }

    /** Without ours, Tomcat 11 loses the response of a forward then: it suspends its own when the forward returns. */
    @ParameterizedTest
    @CsvSource({"true, true", "true, false", "false, true", "false, false"})
    void whatAForwardWritesReachesBothCallersThroughAFilterThatHoldsIt(boolean front, boolean dispatches) {
        Idempotence idempotence = idempotence();
        ServletServer server = start(
                (request, response) -> {
                    if (request.getDispatcherType() == DispatcherType.REQUEST) {
                        request.getRequestDispatcher("/view").forward(request, response);
                    } else if (request.getDispatcherType() == DispatcherType.FORWARD && dispatches) {
                        later(request, request.startAsync(request, response)::dispatch);
                    } else {
                        respond(response, 201, "forwarded");
                    }
                },
                context -> {
                    outermost(context);
                    if (front) {
                        holdBodies(context);
                    }
                    IdempotenceFilter.install(context, idempotence);
                    if (!front) {
                        holdBodies(context);
                    }
                });
        HttpResponse<byte[]> first = call(server);
        assertThat(text(first)).isEqualTo("forwarded");
        assertSameResponse(first, call(server));
        assertThat(runs).hasValue(1);
    }

    private static void holdBodies(ServletContext context) {
        FilterRegistration.Dynamic etag = context.addFilter("etag", new ShallowEtagHeaderFilter());
        etag.setAsyncSupported(true);
        etag.addMappingForUrlPatterns(EnumSet.of(DispatcherType.REQUEST, DispatcherType.ASYNC), true, "/*");
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
                    inFront(
                            context,
                            (request, response, chain) -> chain.doFilter(
                                    request, new HttpServletResponseWrapper((HttpServletResponse) response)));
                    IdempotenceFilter.install(context, idempotence);
                });
        HttpResponse<byte[]> first = call(server);
        assertThat(text(first)).isEqualTo("one two");
        if (container == Container.UNDERTOW) {
            // It chooses the response of the handler, where others choose their own.
            awaitReplay(server, first);
        } else {
            assertThat(Http.refusal(awaitEnd(server))).isEqualTo("result-unavailable");
        }
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
                    IdempotenceFilter.builder(idempotence).idOptional().build().install(context);
                });
        assertThat(Http.post(server.uri("/p"), null, "{}").statusCode()).isEqualTo(201);
    }

    @Test
    @DisplayName("P6: a filter in front that proceeds again after a failure runs nothing without a claim")
    void aFilterInFrontThatProceedsAgainRunsNothingUnprotected() {
        assumeThat(container)
                .as("Tomcat runs the servlet at once, and no other filter sees it")
                .isNotEqualTo(Container.TOMCAT);
        policy = IdempotencePolicy.builder()
                .failureRule(FailureRule.RELEASE_IF_NOTHING_TOOK_EFFECT)
                .build();
        Idempotence idempotence = idempotence();
        ServletServer server = start(
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

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    @DisplayName("P6: an ID that a filter in front adds with getHeader or getHeaders alone is no request without an ID")
    void anIdThatAFilterInFrontAddsIsSeen(boolean withGetHeaders) {
        Idempotence idempotence = idempotence();
        ServletServer server = start((request, response) -> respond(response, 200, "paid"), context -> {
            inFront(
                    context,
                    (request, response, chain) -> chain.doFilter(
                            new HttpServletRequestWrapper((HttpServletRequest) request) {
                                @Override
                                public String getHeader(String name) {
                                    return adds(name, false) ? id : super.getHeader(name);
                                }

                                @Override
                                public Enumeration<String> getHeaders(String name) {
                                    return adds(name, true)
                                            ? Collections.enumeration(List.of(id))
                                            : super.getHeaders(name);
                                }

                                private boolean adds(String name, boolean here) {
                                    return name.equalsIgnoreCase("Idempotency-Key") && here == withGetHeaders;
                                }
                            },
                            response));
            IdempotenceFilter.builder(idempotence).idOptional().build().install(context);
        });
        HttpRequest request = HttpRequest.newBuilder(server.uri("/p"))
                .PUT(HttpRequest.BodyPublishers.noBody())
                .build();
        assertThat(Http.send(request).statusCode()).isEqualTo(200);
        assertThat(replayed(Http.send(request))).isTrue();
        assertThat(runs).hasValue(1);
    }

    @Test
    void formReachesAHandlerThoughAFilterInFrontChangesTheMethod() {
        ServletServer server = serveBehind(
                (request, response, chain) -> chain.doFilter(
                        new HttpServletRequestWrapper((HttpServletRequest) request) {
                            @Override
                            public String getMethod() {
                                return "PUT";
                            }
                        },
                        response),
                (request, response) -> respond(response, 200, request.getMethod() + " " + request.getParameter("a")));
        String form = "application/x-www-form-urlencoded";
        assertThat(text(post(server.uri("/p"), id, "a=1", "Content-Type", form)))
                .isEqualTo("PUT 1");
    }
}
