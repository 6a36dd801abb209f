package io.idempotence.it.server;

import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.container.Http.request;
import static io.idempotence.it.container.Http.text;
import static io.idempotence.it.wire.Latches.awaitLatch;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.it.container.Http;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.ServletServer.Handler;
import io.idempotence.server.Idempotence;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.FilterRegistration;
import jakarta.servlet.ReadListener;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletInputStream;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.EnumSet;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import java.util.zip.GZIPInputStream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Handlers that respond from another thread, later. */
class AsyncHandlersIT extends FilterTestBase {
    @Test
    void asyncDispatchesReachBothCallers() {
        ServletServer server = serve(AsyncHandlersIT::dispatchTwice);
        HttpResponse<byte[]> first = call(server);
        assertThat(text(first)).isEqualTo("dispatched twice");
        assertSameResponse(first, call(server));
        assertThat(runs).hasValue(1);
    }

    private static void dispatchTwice(HttpServletRequest request, HttpServletResponse response) throws IOException {
        Integer round = (Integer) request.getAttribute("round");
        if (round == null || round == 1) {
            request.setAttribute("round", round == null ? 1 : 2);
            AsyncContext async = request.startAsync();
            async.start(async::dispatch);
        } else {
            respond(response, 200, "dispatched twice");
        }
    }

    @Test
    void aFilterMappedToRequestsOnlyStillRespondsInAsyncDispatches() {
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

    /** As {@code install} does, but the filter does not know its patterns. */
    static void mapByHand(ServletContext context, Idempotence idempotence, String asyncPattern) {
        FilterRegistration.Dynamic filter = context.addFilter(
                "by hand", IdempotenceFilter.builder(idempotence).build());
        filter.setAsyncSupported(true);
        filter.addMappingForUrlPatterns(EnumSet.of(DispatcherType.REQUEST), true, "/payments/*");
        filter.addMappingForUrlPatterns(EnumSet.of(DispatcherType.ASYNC, DispatcherType.ERROR), true, asyncPattern);
    }

    @Test
    @DisplayName("a request that a filter mapped by hand does not protect is not refused in its dispatches")
    void aFilterMappedByHandLeavesTheDispatchesOfOthersAlone() {
        Idempotence idempotence = idempotence();
        ServletServer server = start(AsyncHandlersIT::dispatchTwice, context -> mapByHand(context, idempotence, "/*"));
        HttpResponse<byte[]> elsewhere = Http.post(server.uri("/search"), null, "{}");
        assertThat(elsewhere.statusCode()).isEqualTo(200);
        assertThat(text(elsewhere)).isEqualTo("dispatched twice");
        HttpResponse<byte[]> first = call(server);
        assertThat(text(first)).isEqualTo("dispatched twice");
        awaitReplay(server, first);
    }

    @Test
    @DisplayName("P4: a response dispatched to where a filter mapped by hand does not see it is no empty success")
    void aFilterMappedByHandDoesNotKeepWhatItDoesNotSeeAgain() {
        Idempotence idempotence = idempotence();
        ServletServer server = start(
                (request, response) -> {
                    if (request.getDispatcherType() == DispatcherType.ASYNC) {
                        respond(response, 200, "paid");
                    } else if (request.getRequestURI().endsWith("/here")) {
                        request.startAsync().dispatch();
                    } else {
                        request.startAsync().dispatch("/view");
                    }
                },
                context -> mapByHand(context, idempotence, "/payments/*"));
        assertThat(text(Http.post(server.uri("/payments/here"), id + "-1", "{}")))
                .isEqualTo("paid");
        HttpResponse<byte[]> first = call(server);
        assertThat(text(first)).isEqualTo("paid");
        awaitReplay(server, first);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    @DisplayName("P4: a response that the container compresses can be read by both callers")
    void aResponseThatTheContainerCompressesCanBeReadByBothCallers(boolean held) throws IOException {
        compressing = true;
        String large = "paid and paid and ".repeat(20_000);
        Idempotence idempotence = idempotence();
        ServletServer server = start(
                (request, response) -> {
                    if (request.getDispatcherType() == DispatcherType.REQUEST) {
                        request.startAsync().dispatch("/view");
                    } else {
                        response.setHeader("Cache-Control", "max-age=5");
                        response.addHeader("Link", "</a>; rel=next");
                        response.setHeader("ETag", "W/\"v1\"");
                        respond(response, 200, large);
                    }
                },
                context -> {
                    if (held) {
                        IdempotenceFilter.install(context, idempotence);
                    } else {
                        mapByHand(context, idempotence, "/payments/*");
                    }
                });
        String[] headers = {"Accept-Encoding", "gzip"};
        HttpResponse<byte[]> first = Http.post(server.uri("/payments"), id, "{}", headers);
        assertThat(unzipped(first)).isEqualTo(large);
        AtomicReference<HttpResponse<byte[]>> second = new AtomicReference<>();
        await().until(() -> {
            second.set(Http.post(server.uri("/payments"), id, "{}", headers));
            return replayed(second.get());
        });
        assertThat(unzipped(second.get())).isEqualTo(large);
        HttpResponse<byte[]> plain = Http.post(server.uri("/payments"), id, "{}");
        assertThat(plain.headers().firstValue("Content-Encoding")).isEmpty();
        assertThat(plain.headers().allValues("ETag")).containsExactly("W/\"v1\"");
        assertThat(second.get().headers().allValues("ETag"))
                .isEqualTo(first.headers().allValues("ETag"));
        assertThat(text(plain)).isEqualTo(large);
        for (HttpResponse<byte[]> each : List.of(first, second.get(), plain)) {
            assertThat(each.headers().allValues("Cache-Control")).containsExactly("max-age=5");
            assertThat(each.headers().allValues("Link")).containsExactly("</a>; rel=next");
        }
        assertThat(runs).hasValue(1);
    }

    private static String unzipped(HttpResponse<byte[]> response) throws IOException {
        assertThat(response.headers().allValues("Content-Encoding")).containsExactly("gzip");
        try (InputStream in = new GZIPInputStream(new ByteArrayInputStream(response.body()))) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
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

    /** As a reader with back pressure does: it reads when its consumer asks for more, and not when data is announced. */
    @Test
    void nonBlockingHandlersThatReadInAnotherThreadReachBothCallers() {
        Handler handler = (request, response) -> {
            AsyncContext async = request.startAsync();
            async.setTimeout(10_000);
            ByteArrayOutputStream body = new ByteArrayOutputStream();
            ServletInputStream in = request.getInputStream();
            in.setReadListener(new ReadListener() {
                @Override
                public void onDataAvailable() {
                    Thread caller = Thread.currentThread();
                    executor.execute(() -> {
                        await().until(() -> Stream.of(caller.getStackTrace())
                                .noneMatch(frame -> frame.getClassName().startsWith("io.idempotence.")));
                        readAll(in, body);
                    });
                }

                @Override
                public void onAllDataRead() {
                    respond(async, 200, body.toString(StandardCharsets.UTF_8));
                    async.complete();
                }

                @Override
                public void onError(Throwable e) {
                    async.complete();
                }
            });
        };
        HttpResponse<byte[]> without = call(start(handler, context -> {}));
        assertThat(text(without)).isEqualTo("{\"amount\":5}");
        ServletServer server = serve(handler);
        HttpResponse<byte[]> first = call(server);
        assertThat(text(first)).isEqualTo(text(without));
        assertSameResponse(first, call(server));
        assertThat(runs).hasValue(2);
    }

    private static void readAll(ServletInputStream in, ByteArrayOutputStream body) {
        try {
            while (in.isReady() && !in.isFinished()) {
                int next = in.read();
                if (next >= 0) {
                    body.write(next);
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Tasks that are started later run meanwhile, so the second listener would run, too, if it could. */
    @Test
    void aListenerBeginsWhenTheOneThatSetItHasReturned() {
        ServletServer server = serve((request, response) -> {
            AsyncContext async = request.startAsync();
            ServletInputStream in = request.getInputStream();
            AtomicBoolean inTime = new AtomicBoolean();
            in.setReadListener(new ReadListener() {
                @Override
                public void onDataAvailable() throws IOException {
                    in.readAllBytes();
                }

                @Override
                public void onAllDataRead() throws IOException {
                    AtomicBoolean began = new AtomicBoolean();
                    ServletOutputStream out = async.getResponse().getOutputStream();
                    out.setWriteListener(new WriteListener() {
                        @Override
                        public void onWritePossible() throws IOException {
                            began.set(true);
                            out.print(inTime.get());
                            async.complete();
                        }

                        @Override
                        public void onError(Throwable e) {
                            async.complete();
                        }
                    });
                    for (int i = 0; i < 10; i++) {
                        CountDownLatch ran = new CountDownLatch(1);
                        async.start(ran::countDown);
                        awaitLatch(ran);
                    }
                    inTime.set(!began.get());
                }

                @Override
                public void onError(Throwable e) {
                    async.complete();
                }
            });
        });
        assertThat(text(call(server))).isEqualTo("true");
    }

    @Test
    void whatIsWrittenAfterCompleteInTheSameDispatchReachesBothCallers() {
        ServletServer server = serve((request, response) -> {
            request.startAsync().complete();
            respond(response, 201, "written after complete");
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(text(first)).isEqualTo("written after complete");
        assertSameResponse(first, call(server));
    }
}
