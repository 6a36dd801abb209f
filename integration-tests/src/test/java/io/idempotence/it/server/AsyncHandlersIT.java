package io.idempotence.it.server;

import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.request;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.it.container.Http;
import io.idempotence.it.container.ServletServer;
import io.idempotence.server.Idempotence;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.FilterRegistration;
import jakarta.servlet.ReadListener;
import jakarta.servlet.ServletInputStream;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.http.HttpResponse;
import java.util.EnumSet;
import org.junit.jupiter.api.Test;

/** Rule 6: handlers that answer from another thread, later. */
class AsyncHandlersIT extends FilterTestBase {

    @Test
    void asyncAnswersFromAnotherThreadReachBothCallers() {
        ServletServer server = serve((request, response) -> {
            AsyncContext async = request.startAsync();
            executor.execute(() -> {
                writeLater(async, 201, "from another thread");
                async.complete();
            });
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(201);
        assertThat(text(first)).isEqualTo("from another thread");
        assertSameAnswer(first, call(server));
        assertThat(runs).hasValue(1);
    }

    @Test
    void asyncCompletedBeforeTheServletReturnsReachesBothCallers() {
        ServletServer server = serve((request, response) -> {
            AsyncContext async = request.startAsync(request, response);
            writeLater(async, 200, "at once");
            async.complete();
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(text(first)).isEqualTo("at once");
        assertSameAnswer(first, call(server));
        assertThat(runs).hasValue(1);
    }

    @Test
    void asyncDispatchesReachBothCallers() {
        ServletServer server = serve(AsyncHandlersIT::dispatchTwice);
        HttpResponse<byte[]> first = call(server);
        assertThat(text(first)).isEqualTo("dispatched twice");
        assertSameAnswer(first, call(server));
        assertThat(runs).hasValue(1);
    }

    private static void dispatchTwice(HttpServletRequest request, HttpServletResponse response) throws IOException {
        Integer round = (Integer) request.getAttribute("round");
        if (round == null || round == 1) {
            request.setAttribute("round", round == null ? 1 : 2);
            AsyncContext async = request.startAsync();
            async.start(async::dispatch);
        } else {
            answer(response, 200, "dispatched twice");
        }
    }

    @Test
    void aFilterMappedToRequestsOnlyStillAnswersAsyncDispatches() {
        Idempotence idempotence = idempotence();
        ServletServer server = start(AsyncHandlersIT::dispatchTwice, context -> {
            FilterRegistration.Dynamic filter = context.addFilter(
                    "by hand", IdempotenceFilter.builder(idempotence).build());
            filter.setAsyncSupported(true);
            filter.addMappingForUrlPatterns(EnumSet.of(DispatcherType.REQUEST), true, "/*");
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(text(first)).isEqualTo("dispatched twice");
        awaitReplay(server, first);
        assertThat(runs).hasValue(1);
    }

    @Test
    void asyncSendErrorReachesBothCallers() {
        ServletServer server = serve((request, response) -> {
            AsyncContext async = request.startAsync();
            executor.execute(() -> {
                try {
                    ((HttpServletResponse) async.getResponse()).sendError(404, "gone");
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
                async.complete();
            });
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(404);
        awaitReplay(server, first);
        assertThat(runs).hasValue(1);
    }

    @Test
    void nonBlockingHandlersReachBothCallers() {
        ServletServer server = serve((request, response) -> {
            AsyncContext async = request.startAsync();
            ByteArrayOutputStream body = new ByteArrayOutputStream();
            ServletInputStream in = request.getInputStream();
            in.setReadListener(new ReadListener() {
                @Override
                public void onDataAvailable() throws IOException {
                    while (in.isReady() && !in.isFinished()) {
                        body.write(in.read());
                    }
                }

                @Override
                public void onAllDataRead() throws IOException {
                    ServletOutputStream out = async.getResponse().getOutputStream();
                    out.setWriteListener(new WriteListener() {
                        @Override
                        public void onWritePossible() throws IOException {
                            while (out.isReady()) {
                                out.write(body.toByteArray());
                                async.complete();
                                return;
                            }
                        }

                        @Override
                        public void onError(Throwable e) {
                            async.complete();
                        }
                    });
                }

                @Override
                public void onError(Throwable e) {
                    async.complete();
                }
            });
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(text(first)).isEqualTo("{\"amount\":5}");
        assertSameAnswer(first, call(server));
        assertThat(runs).hasValue(1);
    }

    @Test
    void anAsyncTimeoutWithoutAnAnswerIsUnknownForTheWorkMayStillRun() {
        ServletServer server = serve((request, response) -> request.startAsync().setTimeout(100));
        assertThat(call(server).statusCode()).isGreaterThanOrEqualTo(500);
        await().until(() -> "outcome-unknown".equals(refusal(call(server))));
        assertThat(runs).hasValue(1);
    }

    @Test
    void anAsyncTimeoutAnsweredWith503IsUnknownForTheWorkMayStillRun() {
        ServletServer server = serve((request, response) -> {
            AsyncContext async = request.startAsync();
            async.setTimeout(100);
            async.addListener(new AsyncListener() {
                @Override
                public void onTimeout(AsyncEvent event) {
                    writeLater(event.getAsyncContext(), 503, "timed out");
                    event.getAsyncContext().complete();
                }

                @Override
                public void onComplete(AsyncEvent event) {}

                @Override
                public void onError(AsyncEvent event) {}

                @Override
                public void onStartAsync(AsyncEvent event) {}
            });
        });
        assertThat(text(call(server))).isEqualTo("timed out");
        assertThat(refusal(call(server))).isEqualTo("outcome-unknown");
        assertThat(runs).hasValue(1);
    }

    private static void writeLater(AsyncContext async, int status, String body) {
        try {
            answer((HttpServletResponse) async.getResponse(), status, body);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Test
    void whatIsWrittenAfterCompleteInTheSameDispatchReachesBothCallers() {
        ServletServer server = serve((request, response) -> {
            request.startAsync().complete();
            answer(response, 201, "written after complete");
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(text(first)).isEqualTo("written after complete");
        assertSameAnswer(first, call(server));
    }

    @Test
    void aHandlerThatFailsInItsUseOfStreamsIsReleased() {
        ServletServer server = serve((request, response) -> {
            if (runs.get() == 1) {
                request.getInputStream().setReadListener(new ReadListener() {
                    @Override
                    public void onDataAvailable() {}

                    @Override
                    public void onAllDataRead() {}

                    @Override
                    public void onError(Throwable e) {}
                });
            }
            answer(response, 200, "ok");
        });
        assertThat(call(server).statusCode()).isEqualTo(500);
        assertThat(text(call(server))).isEqualTo("ok");
    }

    /** Rule 7 */
    @Test
    void aChunkedFormThatAFilterInFrontHasParsedIsStillCompared() {
        Idempotence idempotence = idempotence();
        ServletServer server =
                start((request, response) -> answer(response, 200, request.getParameter("a")), context -> {
                    FilterRegistration.Dynamic early = context.addFilter("early", (request, response, chain) -> {
                        assertThat(request.getParameter("a")).isNotNull();
                        chain.doFilter(request, response);
                    });
                    early.setAsyncSupported(true);
                    early.addMappingForUrlPatterns(EnumSet.of(DispatcherType.REQUEST), true, "/*");
                    IdempotenceFilter.install(context, idempotence);
                });
        assertThat(Http.raw(server.port(), chunkedForm("a=1"))).startsWith("HTTP/1.1 200");
        assertThat(Http.raw(server.port(), chunkedForm("a=2"))).startsWith("HTTP/1.1 422");
        assertThat(Http.raw(server.port(), chunkedForm("a=1"))).startsWith("HTTP/1.1 200");
        assertThat(runs).hasValue(1);
    }

    private static String chunkedForm(String form) {
        return "POST /p HTTP/1.1\r\nHost: x\r\nConnection: close\r\nIdempotency-Key: k\r\n"
                + "Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n" + form
                + "\r\n0\r\n\r\n";
    }
}
