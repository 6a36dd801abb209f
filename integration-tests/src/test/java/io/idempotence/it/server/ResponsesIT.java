package io.idempotence.it.server;

import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.container.Http.request;
import static io.idempotence.it.container.Http.text;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.it.container.Container;
import io.idempotence.it.container.Http;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.ServletServer.Handler;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.http.HttpServletResponse;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Responses of all kinds: later callers get what the first one got. */
class ResponsesIT extends FilterTestBase {
    @Test
    @DisplayName("P4, T5: the second request gets the first one's response byte for byte")
    void secondRequestGetsTheFirstOnesResponseByteForByte() {
        byte[] body = new byte[256];
        for (int i = 0; i < body.length; i++) {
            body[i] = (byte) i;
        }
        ServletServer server = serve((request, response) -> {
            response.setStatus(201);
            response.setContentType("application/octet-stream");
            response.setHeader("Location", "/payments/" + runs.get());
            response.setHeader("ETag", "\"v1\"");
            response.addHeader("Link", "</a>; rel=next");
            response.addHeader("Link", "</b>; rel=prev");
            response.getOutputStream().write(body);
        });
        HttpResponse<byte[]> first = call(server);
        HttpResponse<byte[]> second = call(server);
        assertThat(first.statusCode()).isEqualTo(201);
        assertThat(first.body()).isEqualTo(body);
        assertThat(first.headers().allValues("Link")).hasSize(2);
        assertSameResponse(first, second);
        assertThat(runs).hasValue(1);
        assertThat(events).containsExactly(IdempotenceEvent.CLAIMED, IdempotenceEvent.REPLAYED);
    }

    @Test
    @DisplayName("P4, T5: empty responses replay")
    void emptyResponsesReplay() {
        ServletServer server = serve((request, response) -> response.setStatus(204));
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(204);
        assertSameResponse(first, call(server));
        assertThat(runs).hasValue(1);
    }

    @ParameterizedTest
    @ValueSource(strings = {"text/plain", "application/json", "text/html;charset=utf-8", "text/plain;charset=utf-16"})
    @DisplayName("a first response by writer is what it is without the filter")
    void firstResponseByWriterIsWhatItIsWithoutTheFilter(String type) {
        Handler handler = (request, response) -> {
            response.setContentType(type);
            response.getWriter().print("grüße ");
            response.getWriter().flush();
            response.getWriter().print("und mehr");
        };
        HttpResponse<byte[]> bare = call(start(handler, context -> {}));
        ServletServer server = serve(handler);
        HttpResponse<byte[]> first = call(server);
        assertThat(first.body()).isEqualTo(bare.body());
        assertThat(first.headers().allValues("Content-Type"))
                .isEqualTo(bare.headers().allValues("Content-Type"));
        assertSameResponse(first, call(server));
    }

    @Test
    void theHandlersOwn503ReachesTheClient() {
        ServletServer server = serve((request, response) -> {
            response.setHeader("Retry-After", "7");
            respond(response, 503, "my own body");
        });
        HttpResponse<byte[]> response = call(server);
        assertThat(text(response)).isEqualTo("my own body");
        assertThat(response.headers().allValues("Retry-After")).containsExactly("7");
        assertThat(refusal(response)).isNull();
    }

    /** A container may finish its own response when a forward returns; the held response must still go out. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void forwardsAndIncludesReachBothCallers(boolean byWriter) {
        ServletServer server = serve((request, response) -> {
            switch (request.getDispatcherType()) {
                case REQUEST -> request.getRequestDispatcher("/view").forward(request, response);
                case FORWARD -> {
                    response.setContentType("text/plain");
                    print(response, byWriter, "forwarded, ");
                    request.getRequestDispatcher("/part").include(request, response);
                }
                default -> print(response, byWriter, "included");
            }
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(text(first)).isEqualTo("forwarded, included");
        assertSameResponse(first, call(server));
        assertThat(runs).hasValue(1);
    }

    /** Containers ignore them. The response of the handler was replaced by that of the fragment, and released its ID with a 503. */
    @ParameterizedTest
    @ValueSource(strings = {"sendError", "sendRedirect", "reset", "length"})
    @DisplayName("P4: what a fragment may not do in an include has no effect")
    void whatAFragmentMayNotDoHasNoEffect(String what) {
        ServletServer server = serve((request, response) -> {
            if (request.getDispatcherType() == DispatcherType.INCLUDE) {
                switch (what) {
                    case "sendError" -> response.sendError(503);
                    case "sendRedirect" -> response.sendRedirect("/elsewhere");
                    case "reset" -> response.reset();
                    default -> {
                        response.setContentLength(3);
                        response.setHeader("Content-Length", "3");
                    }
                }
                response.getWriter().print("fragment");
            } else {
                response.setStatus(201);
                response.getWriter().print("receipt, ");
                request.getRequestDispatcher("/fragment").include(request, response);
                response.getWriter().print(", total");
            }
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(201);
        assertThat(text(first)).isEqualTo("receipt, fragment, total");
        assertSameResponse(first, call(server));
        assertThat(runs).hasValue(1);
    }

    static void print(HttpServletResponse response, boolean byWriter, String text) throws IOException {
        if (byWriter) {
            response.getWriter().print(text);
        } else {
            response.getOutputStream().print(text);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    @DisplayName("P4: a response that the container cuts at its Content-Length is not replayed whole")
    void aResponseThatTheContainerCutsIsNotReplayedWhole(boolean byWriter) {
        ServletServer server = serve((request, response) -> {
            response.setContentLength(5);
            print(response, byWriter, "0123456789");
        });
        callThatMayBeCut(server);
        // Jetty may close the connection of the first one while the next one is on its way.
        await().ignoreExceptionsInstanceOf(UncheckedIOException.class)
                .until(() -> refusal(call(server)), "result-unavailable"::equals);
        assertThat(runs).hasValue(1);
    }

    /** A way to declare a Content-Length. */
    private enum Declaring {
        INT,
        LONG,
        HEADER,
        INT_HEADER;

        void declare(HttpServletResponse response, int length) {
            switch (this) {
                case INT -> response.setContentLength(length);
                case LONG -> response.setContentLengthLong(length);
                case HEADER -> response.setHeader("Content-Length", Integer.toString(length));
                case INT_HEADER -> response.setIntHeader("Content-Length", length);
            }
        }
    }

    /** What a container makes of it differs: Jetty sends a 500, Tomcat sends what there is and closes the connection. */
    @ParameterizedTest
    @EnumSource(Declaring.class)
    @DisplayName("P4: a response that is shorter than its Content-Length is not replayed as if it were whole")
    void responseShorterThanDeclaredIsNotReplayed(Declaring declaring) {
        Handler handler = (request, response) -> {
            declaring.declare(response, 20);
            print(response, false, "012345");
        };
        String without = untilTheConnectionCloses(start(handler, context -> {}));
        runs.set(0);
        ServletServer server = serve(handler);
        assertThat(untilTheConnectionCloses(server)).isEqualTo(without);
        assertThat(refusal(call(server))).isEqualTo("result-unavailable");
        assertThat(runs).hasValue(1);
    }

    @ParameterizedTest
    @ValueSource(ints = {100, 102, 103})
    @DisplayName("P4: an interim response leaves at once, and the final one is recorded")
    void anInterimResponseIsNotRecorded(int status) throws IOException {
        Handler handler = (request, response) -> {
            response.setHeader("Link", "</a>; rel=preload");
            response.sendError(status);
            response.setStatus(201);
            print(response, true, "paid");
        };
        String without = untilPaid(start(handler, context -> {}));
        runs.set(0);
        Idempotence idempotence = idempotence();
        ServletServer server = start(handler, context -> IdempotenceFilter.install(context, idempotence));
        assertThat(untilPaid(server)).isEqualTo(without);
        if (without.contains(" 201 ")) {
            HttpResponse<byte[]> replay = call(server);
            assertThat(replay.statusCode()).isEqualTo(201);
            assertThat(text(replay)).isEqualTo("paid");
            assertThat(replayed(replay)).isTrue();
        } else {
            assertThat(untilPaid(server).replace("Idempotent-Replayed: true\r\n", ""))
                    .isEqualTo(without);
        }
        assertThat(runs).hasValue(1);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    @DisplayName("T13: a handler that aborts the connection leaves an unknown outcome")
    void aHandlerThatAbortsTheConnectionLeavesAnUnknownOutcome(boolean async) {
        Handler handler = (request, response) -> {
            AsyncContext context = async ? request.startAsync() : null;
            response.sendError(-1);
            response.setStatus(201);
            if (context != null) {
                context.complete();
            }
        };
        String without = untilTheConnectionCloses(start(handler, context -> {}));
        runs.set(0);
        ServletServer server = serve(handler);
        if (container == Container.UNDERTOW) {
            // It refuses such a status, and shows a page about that.
            assertThat(without).startsWith("HTTP/1.1 500");
            assertThat(untilTheConnectionCloses(server)).startsWith("HTTP/1.1 500");
        } else {
            assertThat(untilTheConnectionCloses(server)).isEqualTo(without);
        }
        assertThat(refusal(awaitEnd(server))).isEqualTo("outcome-unknown");
        assertThat(runs).hasValue(1);
    }

    /** A response that is cut would otherwise keep its caller waiting until an idle connection times out. */
    private String untilTheConnectionCloses(ServletServer server) {
        return Http.raw(server.port(), rawPayment()).replaceFirst("Date: .*", "");
    }

    private String rawPayment() {
        return "POST /payments HTTP/1.1\r\nHost: x\r\nConnection: close\r\nIdempotency-Key: " + id
                + "\r\nContent-Length: 12\r\n\r\n{\"amount\":5}";
    }

    /** All that the server sends until it closes the connection, or until "paid". Jetty 12.0 stays open after an interim response. */
    private String untilPaid(ServletServer server) throws IOException {
        try (Socket socket = new Socket("127.0.0.1", server.port())) {
            socket.setSoTimeout(20_000);
            socket.getOutputStream().write(rawPayment().getBytes(StandardCharsets.ISO_8859_1));
            InputStream in = new BufferedInputStream(socket.getInputStream());
            StringBuilder sent = new StringBuilder();
            for (int next = in.read(); next >= 0; next = in.read()) {
                sent.append((char) next);
                if (sent.toString().endsWith("paid")) {
                    break;
                }
            }
            return sent.toString().replaceAll("Date: .*", "");
        }
    }
}
