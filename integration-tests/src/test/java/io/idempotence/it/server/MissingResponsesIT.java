package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.wire.Latches.awaitLatch;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.it.container.Container;
import io.idempotence.it.container.Http;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.ServletServer.Handler;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.FilterConfig;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletRequestAttributeEvent;
import jakarta.servlet.ServletRequestAttributeListener;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.UncheckedIOException;
import java.lang.reflect.Proxy;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.util.Collection;
import java.util.Collections;
import java.util.Enumeration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** Handlers that end in a way that leaves no response to record: their IDs do not stay claimed, and their memory is free again. */
class MissingResponsesIT extends FilterTestBase {
    private static final String LARGE = "x".repeat(600 << 10);

    /** A response that throws arbitrary exceptions, like one that its container has recycled. */
    private static final class Recycled extends HttpServletResponseWrapper {
        volatile boolean recycled;
        final AtomicInteger statusReads = new AtomicInteger();

        Recycled(HttpServletResponse response) {
            super(response);
        }

        @Override
        public Collection<String> getHeaders(String name) {
            if (recycled) {
                throw new IllegalStateException("recycled");
            }
            return super.getHeaders(name);
        }

        @Override
        public int getStatus() {
            if (recycled && statusReads.decrementAndGet() < 0) {
                throw new IllegalStateException("recycled");
            }
            return super.getStatus();
        }
    }

    private static void recycle(ServletRequest request) {
        ((Recycled) request.getAttribute("response")).recycled = true;
    }

    private static void recyclable(ServletContext context) {
        inFront(context, (request, response, chain) -> {
            Recycled recycled = new Recycled((HttpServletResponse) response);
            request.setAttribute("response", recycled);
            chain.doFilter(request, recycled);
        });
    }

    /** The ID that was used is unknown. There is memory for one more request of this size only if that of the first one is free. */
    private void assertEndedAsUnknown(ServletServer server) {
        assertThat(refusal(post(server.uri("/p"), id, LARGE))).isEqualTo("outcome-unknown");
        assertThat(refusal(post(server.uri("/p"), "another", LARGE))).isNull();
        assertThat(runs).hasValue(2);
        assertThat(events).contains(IdempotenceEvent.UNKNOWN);
    }

    private ServletServer serveBehind(Handler handler, Consumer<ServletContext> inFront) {
        Idempotence idempotence = idempotence();
        return start(handler, context -> {
            inFront.accept(context);
            IdempotenceFilter.builder(idempotence).maxMemory(1 << 20).build().install(context);
        });
    }

    private void assertUnknownBehindARecycledResponse(Handler handler) {
        ServletServer server = serveBehind(handler, MissingResponsesIT::recyclable);
        assertThat(post(server.uri("/p"), id, LARGE).statusCode()).isEqualTo(500);
        assertEndedAsUnknown(server);
    }

    @Test
    @DisplayName("P2: a filter in front that tries again after an attribute listener threw does not run it unprotected")
    void aFilterInFrontThatTriesAgainAfterAListenerThrewGetsAnotherClaim() {
        assumeThat(container == Container.TOMCAT)
                .as("Tomcat runs the servlet at once, and no other filter sees it")
                .isFalse();
        Idempotence idempotence = idempotence();
        AtomicBoolean failed = new AtomicBoolean();
        ServletServer server = start((request, response) -> respond(response, 201, "paid"), context -> {
            context.addListener(new ServletRequestAttributeListener() {
                @Override
                public void attributeAdded(ServletRequestAttributeEvent event) {
                    if (event.getName().startsWith("io.idempotence.") && failed.compareAndSet(false, true)) {
                        throw new IllegalStateException("of a listener");
                    }
                }
            });
            inFront(context, (request, response, chain) -> {
                try {
                    chain.doFilter(request, response);
                } catch (IllegalStateException e) {
                    chain.doFilter(request, response);
                }
            });
            IdempotenceFilter.install(context, idempotence);
        });
        HttpResponse<byte[]> first = post(server.uri("/payments"), id, "");
        assertThat(failed).isTrue();
        assertThat(first.statusCode()).isEqualTo(201);
        assertSameResponse(first, post(server.uri("/payments"), id, ""));
        assertThat(runs).hasValue(1);
    }

    @Test
    void failureWhoseResponseIsGoneDoesNotStayClaimed() {
        policy = IdempotencePolicy.builder()
                .exception(IllegalArgumentException.class, Verdict.KEEP)
                .build();
        assertUnknownBehindARecycledResponse((request, response) -> {
            recycle(request);
            throw new IllegalArgumentException("as the test asks");
        });
    }

    @Test
    void failureAfterAClosedResponseThatIsGoneDoesNotStayClaimed() {
        assertUnknownBehindARecycledResponse((request, response) -> {
            response.getOutputStream().close();
            recycle(request);
            throw new IllegalArgumentException("as the test asks");
        });
    }

    @Test
    void handlerThatReturnedWhenItsResponseWasGoneIsNotTakenForOneThatSucceeded() {
        assertUnknownBehindARecycledResponse((request, response) -> {
            response.setStatus(503);
            recycle(request);
        });
    }

    @Test
    void statusThatWasReadBeforeTheResponseWasGoneCounts() {
        ServletServer server = serveBehind(
                (request, response) -> {
                    response.setStatus(201);
                    ((Recycled) request.getAttribute("response")).statusReads.set(1);
                    recycle(request);
                },
                MissingResponsesIT::recyclable);
        assertThat(post(server.uri("/p"), id, "").statusCode()).isEqualTo(500);
        assertThat(refusal(post(server.uri("/p"), id, ""))).isEqualTo("result-unavailable");
        assertThat(runs).hasValue(1);
    }

    /** A request that accepts no attribute between two dispatches, and perhaps no dispatch. */
    private static final class LeftAlone extends HttpServletRequestWrapper {
        private final CountDownLatch waits;
        private final boolean canDispatch;

        LeftAlone(HttpServletRequest request, CountDownLatch waits, boolean canDispatch) {
            super(request);
            this.waits = waits;
            this.canDispatch = canDispatch;
        }

        @Override
        public AsyncContext startAsync(ServletRequest request, ServletResponse response) {
            AsyncContext started = super.startAsync(request, response);
            waits.countDown();
            return (AsyncContext) Proxy.newProxyInstance(
                    AsyncContext.class.getClassLoader(),
                    new Class<?>[] {AsyncContext.class},
                    (proxy, method, arguments) -> {
                        if (method.getName().equals("dispatch") && !canDispatch) {
                            throw new UnsupportedOperationException("as the test asks");
                        }
                        return method.invoke(started, arguments);
                    });
        }

        @Override
        public void setAttribute(String name, Object value) {
            if (isAsyncStarted()) {
                throw new UnsupportedOperationException("as the test asks");
            }
            super.setAttribute(name, value);
        }
    }

    @Test
    void duplicateThatWaitedWhoseDispatchFailsIsNotLeftWaiting() throws Exception {
        assertThat(statusOfADuplicateThatWaited(false)).isEqualTo(500);
    }

    @Test
    void requestOfAWaitingDuplicateIsNotChangedByTheThreadThatEndsTheWait() throws Exception {
        assertThat(statusOfADuplicateThatWaited(true)).isEqualTo(201);
    }

    private int statusOfADuplicateThatWaited(boolean canDispatch) throws Exception {
        CountDownLatch goOn = new CountDownLatch(1);
        CountDownLatch waiting = new CountDownLatch(1);
        ServletServer server = serveBehind(
                (request, response) -> {
                    await().until(() -> goOn.getCount() == 0);
                    respond(response, 201, "done");
                },
                context -> inFront(
                        context,
                        (request, response, chain) -> chain.doFilter(
                                new LeftAlone((HttpServletRequest) request, waiting, canDispatch), response)));
        CompletableFuture<HttpResponse<byte[]>> first = Http.sendAsync(Http.request("POST", server.uri("/p"), id, ""));
        await().until(() -> runs.get() == 1);
        CompletableFuture<HttpResponse<byte[]>> waits =
                Http.sendAsync(Http.request("POST", server.uri("/p"), id, "", "Prefer", "wait=9"));
        awaitLatch(waiting);
        goOn.countDown();
        assertThat(first.get(60, TimeUnit.SECONDS).statusCode()).isEqualTo(201);
        int status = waits.get(60, TimeUnit.SECONDS).statusCode();
        assertThat(replayed(post(server.uri("/p"), id, ""))).isTrue();
        return status;
    }

    @Test
    void malformedFormAfterAsynchronousProcessingWasStartedDoesNotLeaveItsCallerWaiting() throws Exception {
        CountDownLatch ended = new CountDownLatch(1);
        ServletServer server = serveBehind(
                (request, response) -> {
                    request.startAsync().setTimeout(0);
                    request.getParameter("a");
                },
                context -> inFront(context, (request, response, chain) -> {
                    try {
                        chain.doFilter(request, response);
                    } catch (ServletException | RuntimeException e) {
                        ended.countDown();
                        throw e;
                    }
                }));
        if (container == Container.JETTY || ServletServer.isServlet61()) {
            // Tomcat 10.1 leaves malformed parameters out.
            assertThat(awaitsNothing(server)).isTrue();
            assertThat(ended.await(60, TimeUnit.SECONDS)).isTrue();
            await().until(() -> "outcome-unknown".equals(refusal(sendMalformed(server))));
        }
    }

    /** A container makes an error of it, or cuts the connection as Tomcat does after an asynchronous start. */
    private boolean awaitsNothing(ServletServer server) {
        try {
            return sendMalformed(server).statusCode() >= 400;
        } catch (UncheckedIOException e) {
            return !(e.getCause() instanceof HttpTimeoutException);
        }
    }

    private HttpResponse<byte[]> sendMalformed(ServletServer server) {
        return post(server.uri("/p"), id, "a=%zz", "Content-Type", "application/x-www-form-urlencoded");
    }

    @Test
    void filterThatCannotMapItselfToErrorPagesRefusesToStart() {
        IdempotenceFilter filter = IdempotenceFilter.builder(idempotence()).build();
        AtomicReference<ServletContext> application = new AtomicReference<>();
        start((request, response) -> respond(response, 200, "ok"), application::set);
        assertThatThrownBy(() -> filter.init(new OfAComposite(application.get())))
                .isInstanceOf(ServletException.class)
                .hasMessageContaining("'part of a composite'")
                .hasMessageContaining("IdempotenceFilter.install(servletContext");
    }

    /** The configuration that a composite filter passes to its parts: the container has no filter of this name. */
    private record OfAComposite(ServletContext context) implements FilterConfig {
        @Override
        public String getFilterName() {
            return "part of a composite";
        }

        @Override
        public ServletContext getServletContext() {
            return context;
        }

        @Override
        public String getInitParameter(String name) {
            return null;
        }

        @Override
        public Enumeration<String> getInitParameterNames() {
            return Collections.emptyEnumeration();
        }
    }
}
