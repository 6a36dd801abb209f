package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.container.Http.request;
import static io.idempotence.it.container.Http.text;
import static io.idempotence.it.wire.Latches.awaitLatch;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.it.container.Http;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.ServletServer.Handler;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.servlet.IdempotenceFilterBuilder;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.http.Cookie;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What later callers get is what the first one got. */
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

    /** What a filter in front with a bug does when the response is to leave, the first time. */
    @FunctionalInterface
    private interface Bug {
        void on(HttpServletResponse response, ServletOutputStream stream) throws IOException;
    }

    private enum Way {
        IN_ITS_DISPATCH,
        LATER,
        LATER_AND_MAPPED_BY_HAND,
        LATER_AND_MAPPED_BY_HAND_WITHOUT_A_TIMEOUT
    }

    private ServletServer serveBehind(Bug bug, Way way) {
        AtomicBoolean breaks = new AtomicBoolean(true);
        Idempotence idempotence = idempotence();
        CountDownLatch dispatched = new CountDownLatch(1);
        Handler handler = (request, response) -> {
            response.setHeader("X-Handler", "seen");
            if (way != Way.IN_ITS_DISPATCH) {
                AsyncContext async = request.startAsync(request, response);
                async.setTimeout(way == Way.LATER_AND_MAPPED_BY_HAND ? 3000 : 0);
                executor.execute(() -> {
                    awaitLatch(dispatched);
                    respond(async, 201, "paid, and more");
                    async.complete();
                });
            } else {
                respond(response, 201, "paid, and more");
            }
        };
        return start(handler, context -> {
            inFront(context, (request, response, chain) -> {
                ((HttpServletResponse) response).setHeader("X-Front", "seen");
                chain.doFilter(request, new HttpServletResponseWrapper((HttpServletResponse) response) {
                    @Override
                    public ServletOutputStream getOutputStream() throws IOException {
                        ServletOutputStream stream = super.getOutputStream();
                        if (breaks.getAndSet(false)) {
                            bug.on(this, stream);
                            throw new IllegalStateException("a bug of a filter in front");
                        }
                        return stream;
                    }
                });
                dispatched.countDown();
            });
            if (way == Way.LATER_AND_MAPPED_BY_HAND || way == Way.LATER_AND_MAPPED_BY_HAND_WITHOUT_A_TIMEOUT) {
                AsyncHandlersIT.mapByHand(context, idempotence, "/payments/*");
            } else {
                IdempotenceFilter.install(context, idempotence);
            }
        });
    }

    private void assertReplaysWhole(ServletServer server) {
        HttpResponse<byte[]> second = call(server);
        assertThat(second.statusCode()).isEqualTo(201);
        assertThat(text(second)).isEqualTo("paid, and more");
        assertThat(replayed(second)).isTrue();
        assertThat(runs).hasValue(1);
    }

    @ParameterizedTest
    @EnumSource(Way.class)
    @DisplayName("P4: a response that the container does not take is no empty success, and is recorded all the same")
    void aResponseThatIsNotTakenIsNoEmptySuccess(Way way) {
        ServletServer server = serveBehind((response, stream) -> response.resetBuffer(), way);
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(500);
        assertThat(first.headers().allValues("X-Front")).containsExactly("seen");
        assertThat(first.headers().allValues("X-Handler")).isEmpty();
        assertReplaysWhole(server);
    }

    @ParameterizedTest
    @EnumSource(value = Way.class, mode = EnumSource.Mode.EXCLUDE, names = "LATER_AND_MAPPED_BY_HAND_WITHOUT_A_TIMEOUT")
    @DisplayName("P4: a response of which a part has left is cut, and does not look whole")
    void aResponseThatIsTakenInPartDoesNotLookWhole(Way way) {
        assumeThat(way == Way.LATER_AND_MAPPED_BY_HAND && container == Container.JETTY)
                .as("Jetty ends a response properly at its timeout, too")
                .isFalse();
        ServletServer server = serveBehind(ResponsesIT::takeFourBytes, way);
        assertThatThrownBy(() -> call(server)).isInstanceOf(UncheckedIOException.class);
        assertReplaysWhole(server);
    }

    private static void takeFourBytes(HttpServletResponse response, ServletOutputStream stream) throws IOException {
        stream.write("paid".getBytes(StandardCharsets.US_ASCII));
        response.flushBuffer();
    }

    @Test
    @DisplayName("P4: a response that nothing can cut ends all the same: its caller does not wait without end")
    void aResponseThatIsTakenInPartAndThatNothingCanCutEnds() {
        ServletServer server = serveBehind(ResponsesIT::takeFourBytes, Way.LATER_AND_MAPPED_BY_HAND_WITHOUT_A_TIMEOUT);
        assertThat(text(call(server))).isEqualTo("paid");
        assertReplaysWhole(server);
    }

    @Test
    @DisplayName("P4: what a filter in front sets belongs to it: it is neither kept nor given twice")
    void headersOfAFilterInFrontAreItsOwn() {
        AtomicInteger requests = new AtomicInteger();
        Idempotence idempotence = idempotence();
        ServletServer server = start(
                (request, response) -> {
                    response.setHeader("Cache-Control", "max-age=5");
                    response.addHeader("Link", "</a>; rel=next");
                    response.addHeader("Link", "</b>; rel=prev");
                    respond(response, 200, "paid");
                },
                context -> {
                    inFront(context, (request, response, chain) -> {
                        HttpServletResponse http = (HttpServletResponse) response;
                        http.setHeader("Content-Language", "l" + requests.incrementAndGet());
                        http.setHeader("Cache-Control", "no-store");
                        chain.doFilter(request, response);
                    });
                    IdempotenceFilter.install(context, idempotence);
                });
        HttpResponse<byte[]> first = call(server);
        HttpResponse<byte[]> second = call(server);
        assertThat(replayed(second)).isTrue();
        assertThat(first.headers().allValues("Content-Language")).containsExactly("l1");
        assertThat(second.headers().allValues("Content-Language")).containsExactly("l2");
        for (HttpResponse<byte[]> each : List.of(first, second)) {
            assertThat(each.headers().allValues("Cache-Control")).containsExactly("max-age=5");
            assertThat(each.headers().allValues("Link")).hasSize(2);
        }
    }

    /** Some containers write the header of a locale only when the response leaves. */
    @Test
    @DisplayName("P4: the language of a locale is replayed")
    void theLanguageOfALocaleIsReplayed() {
        ServletServer server = serve((request, response) -> {
            response.setLocale(Locale.GERMANY);
            respond(response, 200, "bezahlt");
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(first.headers().allValues("Content-Language")).containsExactly("de-DE");
        assertSameResponse(first, call(server));
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
    @DisplayName("the first response's headers are what they are without the filter")
    void firstResponsesHeadersAreWhatTheyAreWithoutTheFilter() {
        Handler handler = (request, response) -> {
            response.addHeader("X-One", "1");
            response.addHeader("X-Two", "a");
            response.addHeader("X-Two", "b");
            response.addCookie(new Cookie("session", "s"));
            respond(response, 200, "body");
            response.flushBuffer();
            response.setHeader("X-Late", "ignored, the response is committed");
        };
        HttpResponse<byte[]> bare = call(start(handler, context -> {}));
        HttpResponse<byte[]> first = call(serve(handler));
        assertThat(withoutLength(first)).isEqualTo(withoutLength(bare));
        assertThat(first.body()).isEqualTo(bare.body());
    }

    private static Map<String, List<String>> withoutLength(HttpResponse<byte[]> response) {
        Map<String, List<String>> headers = new TreeMap<>(response.headers().map());
        // How the body is framed is the container's affair, and depends on when it sees the body.
        headers.keySet().removeAll(List.of("content-length", "transfer-encoding", "date"));
        return headers;
    }

    @Test
    @DisplayName("headers of one caller or one moment are not replayed")
    void headersOfOneCallerOrMomentAreNotReplayed() {
        ServletServer server = serve(
                (request, response) -> {
                    response.addCookie(new Cookie("session", "secret"));
                    response.setHeader("X-RateLimit-Remaining", "1");
                    response.setHeader("X-Trace-Id", "t");
                    response.setHeader("WWW-Authenticate", "Basic");
                    response.setHeader("X-Payment", "p");
                    respond(response, 200, "ok");
                },
                filter -> filter.keepHeaders("X-Payment"));
        HttpResponse<byte[]> first = call(server);
        assertThat(first.headers().firstValue("Set-Cookie")).isPresent();
        HttpResponse<byte[]> second = call(server);
        assertThat(second.headers().map().keySet())
                .doesNotContain("set-cookie", "x-ratelimit-remaining", "x-trace-id", "www-authenticate");
        assertThat(second.headers().firstValue("X-Payment")).contains("p");
        assertSameResponse(first, second);
    }

    @Test
    @DisplayName("no setting replays headers of one caller, connection or moment")
    void headersThatMustNotBeReplayedCannotBeKept() {
        IdempotenceFilterBuilder filter = IdempotenceFilter.builder(idempotence());
        for (String name : List.of(
                "Set-Cookie",
                "SET-COOKIE",
                "Date",
                "Connection",
                "Keep-Alive",
                "Transfer-Encoding",
                "Trailer",
                "Upgrade",
                "TE",
                "Content-Length",
                "Proxy-Authenticate",
                "WWW-Authenticate",
                "Authorization",
                "Retry-After",
                "Idempotent-Replayed",
                "Idempotency-Refusal")) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> filter.keepHeaders("X-Payment", name))
                    .withMessageContaining(name);
        }
        for (String none : List.of("", "Set-Cookie:", "X Payment", "X-Payment\r\nSet-Cookie")) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> filter.keepHeaders(none))
                    .withMessageContaining("is not a header name");
        }
    }

    @Test
    void aHandlerCannotPassItsResponseOffAsTheFrameworks() {
        ServletServer server = serve((request, response) -> {
            response.setHeader("Idempotent-Replayed", "true");
            response.addHeader("Idempotency-Refusal", "in-progress");
            respond(response, 200, "ok");
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(replayed(first)).isFalse();
        assertThat(refusal(first)).isNull();
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

    @Test
    @DisplayName("redirects are recorded as the client sees them")
    void redirectsReplay() {
        ServletServer server = serve((request, response) -> {
            if (!request.getRequestURI().equals("/see-other")) {
                response.sendRedirect("/payments/2");
            } else if (ServletServer.isServlet61()) {
                response.sendRedirect("/payments/1", 303);
            } else {
                response.setStatus(303);
                response.setHeader("Location", "/payments/1");
            }
        });
        HttpResponse<byte[]> found = post(server.uri("/found"), "k1", "");
        assertThat(found.statusCode()).isEqualTo(302);
        assertThat(found.headers().firstValue("Location").orElseThrow()).endsWith("/payments/2");
        assertSameResponse(found, post(server.uri("/found"), "k1", ""));
        HttpResponse<byte[]> seeOther = post(server.uri("/see-other"), "k2", "");
        assertThat(seeOther.statusCode()).isEqualTo(303);
        assertSameResponse(seeOther, post(server.uri("/see-other"), "k2", ""));
        assertThat(runs).hasValue(2);
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

    private static void print(HttpServletResponse response, boolean byWriter, String text) throws IOException {
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
        try {
            call(server);
        } catch (UncheckedIOException theContainerGaveNoResponse) {
            assertThat(runs).hasValue(1);
        }
        // Jetty may close the connection of the first one while the next one is on its way.
        await().ignoreExceptionsInstanceOf(UncheckedIOException.class)
                .until(() -> refusal(call(server)), "result-unavailable"::equals);
        assertThat(runs).hasValue(1);
    }

    /** Declares a Content-Length in one of the ways that there are. */
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

    /** A response that is cut would otherwise keep its caller waiting until an idle connection times out. */
    private String untilTheConnectionCloses(ServletServer server) {
        return Http.raw(
                        server.port(),
                        "POST /payments HTTP/1.1\r\nHost: x\r\nConnection: close\r\nIdempotency-Key: " + id
                                + "\r\nContent-Length: 12\r\n\r\n{\"amount\":5}")
                .replaceFirst("Date: .*", "");
    }

    @Test
    void responseWithoutBodyMayDeclareTheLengthOfAnother() {
        ServletServer server = serve((request, response) -> response.setStatus(204));
        HttpResponse<byte[]> first = call(server);
        assertSameResponse(first, call(server));
    }

    /** A container whose callers take no cookies, as far as a handler sees it. */
    private ServletServer serveWithSessionsInUrls(Handler handler) {
        Idempotence idempotence = idempotence();
        return start(handler, context -> {
            inFront(context, (request, response, chain) -> {
                String session = ((HttpServletRequest) request).getHeader("X-Session");
                chain.doFilter(request, new HttpServletResponseWrapper((HttpServletResponse) response) {
                    @Override
                    public String encodeURL(String url) {
                        return url.replaceFirst("([^?#]*)", "$1;jsessionid=" + session);
                    }

                    @Override
                    public String encodeRedirectURL(String url) {
                        return encodeURL(url);
                    }
                });
            });
            IdempotenceFilter.install(context, idempotence);
        });
    }

    private HttpResponse<byte[]> callAs(ServletServer server, String session) {
        return post(server.uri("/payments"), id, "", "X-Session", session);
    }

    @Test
    void sessionOfOneCallerIsNotGivenToAnotherInARedirect() {
        ServletServer server = serveWithSessionsInUrls(
                (request, response) -> response.sendRedirect(response.encodeRedirectURL("/payments/1?a=b")));
        HttpResponse<byte[]> first = callAs(server, "FIRST");
        assertThat(first.headers().firstValue("Location").orElseThrow()).endsWith("/payments/1;jsessionid=FIRST?a=b");
        HttpResponse<byte[]> second = callAs(server, "SECOND");
        assertThat(replayed(second)).isTrue();
        assertThat(second.headers().firstValue("Location").orElseThrow()).endsWith("/payments/1;jsessionid=SECOND?a=b");
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void sessionOfOneCallerIsNotGivenToAnotherInAPage(boolean byWriter) {
        ServletServer server = serveWithSessionsInUrls((request, response) -> {
            response.setStatus(201);
            response.setHeader("Location", response.encodeURL("/payments/1"));
            print(response, byWriter, "<a href='" + response.encodeURL("/payments/1?a=b") + "'>");
        });
        HttpResponse<byte[]> first = callAs(server, "FIRST");
        assertThat(text(first)).isEqualTo("<a href='/payments/1;jsessionid=FIRST?a=b'>");
        HttpResponse<byte[]> second = callAs(server, "SECOND");
        assertThat(replayed(second)).isTrue();
        assertThat(text(second)).isEqualTo("<a href='/payments/1?a=b'>");
        assertThat(second.headers().firstValue("Location").orElseThrow()).endsWith("/payments/1");
    }
}
