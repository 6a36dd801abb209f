package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.container.Http.text;
import static io.idempotence.it.wire.Latches.awaitLatch;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.idempotence.FailureRule;
import io.idempotence.http.IdempotenceHeaders;
import io.idempotence.it.container.Container;
import io.idempotence.it.container.Http;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.ServletServer.Handler;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.FilterRegistration;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequestEvent;
import jakarta.servlet.ServletRequestListener;
import jakarta.servlet.http.HttpServletRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code sendError}, exceptions, and the pages that containers and applications make of them. */
class ErrorPagesIT extends FilterTestBase {
    @Test
    @DisplayName("T23: sendError is recorded before its caller sees it")
    void sendErrorIsRecordedBeforeItsCallerSeesIt() {
        ServletServer server = serve((request, response) -> response.sendError(422, "no such account"));
        for (int i = 0; i < 20; i++) {
            HttpResponse<byte[]> first = post(server.uri("/payments"), "order-" + i, "{}");
            HttpResponse<byte[]> second = post(server.uri("/payments"), "order-" + i, "{}");
            assertThat(second.statusCode()).isEqualTo(422);
            assertSameResponse(first, second);
        }
        assertThat(runs).hasValue(20);
    }

    @Test
    @DisplayName("P4: a duplicate that comes while the error page renders gets the page, not one rendered anew")
    void aDuplicateThatComesWhileTheErrorPageRendersGetsThatPage() throws Exception {
        errorPage = "/error";
        AtomicInteger pages = new AtomicInteger();
        CountDownLatch rendering = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        ServletServer server = serve((request, response) -> {
            if (request.getDispatcherType() == DispatcherType.ERROR) {
                int page = pages.incrementAndGet();
                rendering.countDown();
                awaitLatch(goOn);
                response.getWriter().print("page " + page);
            } else {
                response.sendError(422, "no such account");
            }
        });
        CompletableFuture<HttpResponse<byte[]>> first =
                Http.sendAsync(Http.request("POST", server.uri("/payments"), id, "{\"amount\":5}"));
        rendering.await();
        CompletableFuture<HttpResponse<byte[]>> waits = Http.sendAsync(
                Http.request("POST", server.uri("/payments"), id, "{\"amount\":5}", "Prefer", "wait=10"));
        HttpResponse<byte[]> impatient;
        try {
            impatient = Http.sendAsync(Http.request("POST", server.uri("/payments"), id, "{\"amount\":5}"))
                    .get(60, TimeUnit.SECONDS);
        } finally {
            goOn.countDown();
        }
        assertThat(refusal(impatient)).isEqualTo("in-progress");
        assertThat(text(first.join())).isEqualTo("page 1");
        assertSameResponse(first.join(), waits.join());
        assertSameResponse(first.join(), call(server));
        assertThat(pages).hasValue(1);
        assertThat(runs).hasValue(1);
    }

    /** A failure, behind a filter that takes its time after the handler has ended. */
    private void assertDuplicateWhileFiltersReturnGetsThePage(
            BiConsumer<ServletContext, IdempotenceFilter> mapping, Handler failing, boolean pageWasSeen)
            throws Exception {
        errorPage = "/error";
        policy = IdempotencePolicy.builder()
                .failureRule(FailureRule.STORE_EVERYTHING)
                .build();
        AtomicInteger pages = new AtomicInteger();
        AtomicLong failed = new AtomicLong();
        CountDownLatch returning = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        IdempotenceFilter filter = IdempotenceFilter.builder(idempotence()).build();
        ServletServer server = start(
                (request, response) -> {
                    if (request.getDispatcherType() == DispatcherType.ERROR) {
                        response.getWriter().print("page " + pages.incrementAndGet());
                    } else if (!"order-that-succeeds".equals(request.getHeader(IdempotenceHeaders.IDEMPOTENCY_KEY))) {
                        failed.set(System.nanoTime());
                        failing.handle(request, response);
                    }
                },
                context -> {
                    inFront(context, (request, response, chain) -> {
                        try {
                            chain.doFilter(request, response);
                        } finally {
                            boolean isOfFirst = id.equals(
                                    ((HttpServletRequest) request).getHeader(IdempotenceHeaders.IDEMPOTENCY_KEY));
                            if (isOfFirst && returning.getCount() == 1) {
                                returning.countDown();
                                awaitLatch(goOn);
                            }
                        }
                    });
                    mapping.accept(context, filter);
                });
        // The first request of a server may take longer than a failure is held back.
        post(server.uri("/payments"), pageWasSeen ? "order-that-shows-the-page" : "order-that-succeeds", "{}");
        CompletableFuture<HttpResponse<byte[]>> first =
                Http.sendAsync(Http.request("POST", server.uri("/payments"), id, "{\"amount\":5}"));
        returning.await();
        HttpResponse<byte[]> duplicate;
        try {
            duplicate = Http.sendAsync(Http.request("POST", server.uri("/payments"), id, "{\"amount\":5}"))
                    .get(60, TimeUnit.SECONDS);
        } finally {
            goOn.countDown();
        }
        assertThat(failed).doesNotHaveValue(0);
        assumeThatTheMachineDidNotPause(System.nanoTime() - failed.get());
        String page = pageWasSeen ? "page 2" : "page 1";
        assertThat(refusal(duplicate)).isEqualTo("in-progress");
        assertThat(text(first.join())).isEqualTo(page);
        assertSameResponse(first.join(), call(server));
        assertThat(pages).hasValue(pageWasSeen ? 2 : 1);
    }

    /** A failure is held back for a second while its page may follow. */
    private static void assumeThatTheMachineDidNotPause(long nanosSinceTheFailure) {
        assumeThat(Duration.ofNanos(nanosSinceTheFailure)).isLessThan(Duration.ofSeconds(1));
    }

    private static void mapByHand(ServletContext context, IdempotenceFilter filter) {
        FilterRegistration.Dynamic mapped = context.addFilter("mapped", filter);
        mapped.setAsyncSupported(true);
        mapped.addMappingForUrlPatterns(EnumSet.of(DispatcherType.REQUEST), true, "/*");
    }

    @Test
    @DisplayName("P4: a duplicate that comes while filters in front return gets the error page that follows")
    void aDuplicateThatComesBetweenAFailureAndItsErrorPageGetsThePage() throws Exception {
        Handler refusing = (request, response) -> response.sendError(422, "no such account");
        assertDuplicateWhileFiltersReturnGetsThePage((context, filter) -> filter.install(context), refusing, false);
        // In Undertow, nothing announces the end of a request to a filter that is mapped by hand.
        boolean pageWasSeen = container == Container.UNDERTOW;
        assertDuplicateWhileFiltersReturnGetsThePage(ErrorPagesIT::mapByHand, refusing, pageWasSeen);
    }

    @Test
    @DisplayName("P4: so does one if the filter is mapped by hand and has seen the page of an exception")
    void aDuplicateThatComesBetweenAnExceptionAndItsPageGetsThePage() throws Exception {
        Handler throwing = (request, response) -> {
            throw new ServletException("database down");
        };
        assertDuplicateWhileFiltersReturnGetsThePage(ErrorPagesIT::mapByHand, throwing, true);
    }

    /** Jetty ends the dispatch of a failure, and announces the page that follows a moment later. */
    @Test
    @DisplayName("P4: a duplicate that comes between a failure and its page in Jetty gets the page")
    void aDuplicateThatComesBeforeTheContainerBeginsTheErrorPageGetsThatPage() {
        assumeThat(container).isEqualTo(Container.JETTY);
        errorPage = "/error";
        AtomicInteger pages = new AtomicInteger();
        AtomicReference<ServletServer> server = new AtomicReference<>();
        List<HttpResponse<byte[]>> between = new CopyOnWriteArrayList<>();
        AtomicBoolean called = new AtomicBoolean();
        AtomicLong failed = new AtomicLong();
        AtomicLong responded = new AtomicLong();
        ServletRequestListener beforeOurs = new ServletRequestListener() {
            @Override
            public void requestInitialized(ServletRequestEvent event) {
                HttpServletRequest request = (HttpServletRequest) event.getServletRequest();
                boolean isPage = request.getAttribute("begun") != null;
                request.setAttribute("begun", true);
                boolean isOfFirst = id.equals(request.getHeader(IdempotenceHeaders.IDEMPOTENCY_KEY));
                if (isPage && isOfFirst && called.compareAndSet(false, true)) {
                    between.add(call(server.get()));
                    responded.set(System.nanoTime());
                }
            }
        };
        Idempotence idempotence = idempotence();
        server.set(start(
                (request, response) -> {
                    if (request.getDispatcherType() == DispatcherType.ERROR) {
                        response.getWriter().print("page " + pages.incrementAndGet());
                    } else {
                        failed.set(System.nanoTime());
                        response.sendError(422, "no such account");
                    }
                },
                context -> {
                    context.addListener(beforeOurs);
                    IdempotenceFilter.install(context, idempotence);
                }));
        post(server.get().uri("/payments"), "order-that-shows-the-page", "{}");
        HttpResponse<byte[]> first = call(server.get());
        assertThat(text(first)).isEqualTo("page 2");
        assumeThatTheMachineDidNotPause(responded.get() - failed.get());
        assertThat(between)
                .hasSize(1)
                .allSatisfy(early -> assertThat(refusal(early)).isEqualTo("in-progress"));
        assertSameResponse(first, call(server.get()));
        assertThat(pages).hasValue(2);
    }

    @Test
    @DisplayName("T12: the error page of a released failure is not recorded")
    void theErrorPageOfAReleasedFailureIsNotRecorded() {
        errorPage = "/error";
        ServletServer server = serve((request, response) -> {
            if (request.getDispatcherType() == DispatcherType.ERROR) {
                response.getWriter().print("error page");
            } else if (runs.get() == 1) {
                throw new IllegalStateException("database down");
            } else {
                respond(response, 200, "ok");
            }
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(500);
        assertThat(text(first)).isEqualTo("error page");
        assertThat(text(call(server))).isEqualTo("ok");
        assertThat(replayed(call(server))).isTrue();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void anErrorPageThatRedirectsOrSendsAnErrorItselfReachesBothCallers(boolean redirects) {
        errorPage = "/error";
        Handler handler = (request, response) -> {
            if (request.getDispatcherType() != DispatcherType.ERROR) {
                response.sendError(404, "no such account");
            } else if (redirects) {
                response.sendRedirect("/oops");
            } else {
                response.sendError(410, "gone");
            }
        };
        HttpResponse<byte[]> bare = call(start(handler, context -> {}));
        ServletServer server = serve(handler);
        runs.set(0);
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(bare.statusCode());
        assertThat(first.headers().allValues("Location").size())
                .isEqualTo(bare.headers().allValues("Location").size());
        awaitReplay(server, first);
        assertThat(runs).hasValue(1);
    }
}
