package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.container.Http.request;
import static io.idempotence.it.container.Http.text;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.ServletServer.Handler;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.servlet.IdempotenceFilterBuilder;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.http.Cookie;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BinaryOperator;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests of which headers of the first response later callers get, and which they never get. */
class ResponseHeadersIT extends FilterTestBase {
    @Test
    @DisplayName("P4: what a filter in front sets belongs to it: it is neither kept nor given twice")
    void headersOfAFilterInFrontAreItsOwn() {
        AtomicInteger requests = new AtomicInteger();
        ServletServer server = serveBehind(
                (request, response, chain) -> {
                    HttpServletResponse http = (HttpServletResponse) response;
                    http.setHeader("Content-Language", "l" + requests.incrementAndGet());
                    http.setHeader("Cache-Control", "no-store");
                    chain.doFilter(request, response);
                },
                (request, response) -> {
                    response.setHeader("Cache-Control", "max-age=5");
                    response.addHeader("Link", "</a>; rel=next");
                    response.addHeader("Link", "</b>; rel=prev");
                    respond(response, 200, "paid");
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

    /** Spring MVC responds so to a POST with a Range whose handler returns a Resource. */
    @Test
    @DisplayName("P4: a replay shows which part of a resource it is")
    void aReplayShowsWhichPartOfAResourceItIs() {
        ServletServer server = serve((request, response) -> {
            response.setHeader("Content-Range", "bytes 0-3/10");
            respond(response, 206, "0123");
        });
        HttpResponse<byte[]> first = call(server);
        HttpResponse<byte[]> second = call(server);
        assertSameResponse(first, second);
        assertThat(second.headers().allValues("Content-Range")).containsExactly("bytes 0-3/10");
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

    @ParameterizedTest
    @ValueSource(
            strings = {
                "returns",
                "streams",
                "sends an error",
                "throws",
                "completes",
                "times out",
                "includes",
                "streams what it includes"
            })
    void cookiesReachTheCallerAsWithoutTheFilter(String how) {
        Handler handler = (request, response) -> {
            response.addCookie(new Cookie("late", how.replace(' ', '-')));
            switch (how) {
                case "streams" -> {
                    respond(response, 201, "x".repeat(1000));
                    response.flushBuffer();
                }
                case "sends an error" -> response.sendError(422);
                case "throws" -> throw new IllegalStateException("as the test asks");
                case "completes" -> {
                    AsyncContext async = request.startAsync();
                    executor.execute(() -> {
                        respond(async, 201, "paid");
                        async.complete();
                    });
                }
                case "times out" -> request.startAsync().setTimeout(100);
                case "includes", "streams what it includes" -> {
                    if (request.getDispatcherType() == DispatcherType.REQUEST) {
                        request.getRequestDispatcher("/included").include(request, response);
                    } else {
                        response.addCookie(new Cookie("included", "i"));
                        respond(response, 201, how.equals("includes") ? "paid" : "x".repeat(1000));
                    }
                }
                default -> respond(response, 201, "paid");
            }
        };
        ServletServer without = start(handler, context -> {});
        ServletServer with = serve(handler, filter -> filter.maxResponseBody(100));
        assertThat(call(with).headers().allValues("Set-Cookie"))
                .isEqualTo(call(without).headers().allValues("Set-Cookie"));
    }

    /** A container whose callers take no cookies, as far as a handler sees it. Spring also inserts a version of a resource. */
    private ServletServer serveWithSessionsInUrls(Handler handler) {
        return serveWithUrls(
                (url, session) ->
                        url.replaceFirst("^/js/", "/v1/js/").replaceFirst("([^?#]*)", "$1;jsessionid=" + session),
                handler);
    }

    /** @param encode the URL that a filter in front makes of a handler's URL and the caller's session */
    private ServletServer serveWithUrls(BinaryOperator<String> encode, Handler handler) {
        return serveBehind(
                (request, response, chain) -> {
                    String session = ((HttpServletRequest) request).getHeader("X-Session");
                    chain.doFilter(request, new HttpServletResponseWrapper((HttpServletResponse) response) {
                        @Override
                        public String encodeURL(String url) {
                            return encode.apply(url, session);
                        }

                        @Override
                        public String encodeRedirectURL(String url) {
                            return encodeURL(url);
                        }
                    });
                },
                handler);
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
            ResponsesIT.print(response, byWriter, "<a href='" + response.encodeURL("/payments/1?a=b") + "'>");
        });
        HttpResponse<byte[]> first = callAs(server, "FIRST");
        assertThat(text(first)).isEqualTo("<a href='/payments/1;jsessionid=FIRST?a=b'>");
        HttpResponse<byte[]> second = callAs(server, "SECOND");
        assertThat(replayed(second)).isTrue();
        assertThat(text(second)).isEqualTo("<a href='/payments/1?a=b'>");
        assertThat(second.headers().firstValue("Location").orElseThrow()).endsWith("/payments/1");
    }

    @Test
    @DisplayName("P4: only session IDs are left out of a page, not what a filter in front inserts into its URLs")
    void versionsOfResourcesStayInAPage() {
        ServletServer server = serveWithSessionsInUrls((request, response) -> respond(
                response, 201, "<script src='" + response.encodeURL("/js/app.js") + "'><a href='/api/v1/payments/7'>"));
        callAs(server, "FIRST");
        assertThat(text(callAs(server, "SECOND")))
                .isEqualTo("<script src='/v1/js/app.js'><a href='/api/v1/payments/7'>");
    }

    /** As Tomcat's CsrfPreventionFilter adds a nonce, others add a version, and a page escapes what it gets. */
    @Test
    void nonceOfOneCallerIsNotGivenToAnother() {
        String value = "0123456789ABCDEF";
        ServletServer server = serveWithUrls(
                (url, session) -> {
                    String added = url.endsWith(".js") ? "v=3" : "csrf.NONCE=" + session;
                    return url + (url.contains("?") ? "&" : "?") + added;
                },
                (request, response) -> respond(
                        response,
                        201,
                        Stream.of("/a", "/a?to=" + value, "/app.js")
                                        .map(response::encodeURL)
                                        .map(url -> url.replace("&", "&amp;"))
                                        .collect(Collectors.joining(" "))
                                + " /other.js?v=3 /b?to=" + value));
        String rest = " /app.js?v=3 /other.js?v=3 /b?to=" + value;
        String nonce = "csrf.NONCE=FIRST-" + value;
        assertThat(text(callAs(server, "FIRST-" + value)))
                .isEqualTo("/a?" + nonce + " /a?to=" + value + "&amp;" + nonce + rest);
        assertThat(text(callAs(server, "SECOND-" + value))).isEqualTo("/a? /a?to=" + value + "&amp;" + rest);
    }

    @Test
    @DisplayName("P4: a parameter that a filter in front only escapes, or escapes otherwise, stays in a page")
    void parameterThatIsOnlyEscapedStaysInAPage() {
        ServletServer server = serveWithUrls(
                (url, session) -> url.replace("ë", "%C3%AB").replace(" ", "+").replace("%2f", "%2F"),
                (request, response) -> respond(
                        response,
                        201,
                        response.encodeURL("/a?name=Zoë Example Street")
                                + response.encodeURL("?to=%2f0123456789ABCDEF")));
        String page = text(callAs(server, "FIRST"));
        assertThat(page).isEqualTo("/a?name=Zo%C3%AB+Example+Street?to=%2F0123456789ABCDEF");
        assertThat(text(callAs(server, "SECOND"))).isEqualTo(page);
    }

    @Test
    void parameterWhoseValueHasAnInvalidEscapeIsNotGivenToAnother() {
        ServletServer server = serveWithUrls(
                (url, session) -> url + "?nonce=%" + session,
                (request, response) -> respond(response, 201, response.encodeURL("/a")));
        assertThat(text(callAs(server, "FIRST-0123456789ABCDEF"))).isEqualTo("/a?nonce=%FIRST-0123456789ABCDEF");
        assertThat(text(callAs(server, "SECOND-0123456789ABCDEF"))).isEqualTo("/a?");
    }

    /** Gson escapes in the first way, and some libraries for pages in the second. */
    @ParameterizedTest
    @ValueSource(strings = {"\\u003d", "&#61;"})
    void nonceWhoseEqualsSignIsEscapedIsNotGivenToAnother(String equals) {
        ServletServer server = serveWithUrls(
                (url, session) -> url + "?nonce=" + session,
                (request, response) ->
                        respond(response, 201, response.encodeURL("/a").replace("=", equals)));
        assertThat(text(callAs(server, "0123456789ABCDE=")))
                .isEqualTo("/a?nonce=0123456789ABCDE=".replace("=", equals));
        assertThat(text(callAs(server, "SECOND"))).isEqualTo("/a?");
    }

    @Test
    void nonceThatBeginsWithAnotherIsNotGivenToAnother() {
        ServletServer server = serveWithUrls(
                (url, session) -> url + "?nonce=" + session + url.substring(1),
                (request, response) -> respond(
                        response,
                        201,
                        Stream.of("/", "/a", "/ab", "/abc", "/abcd")
                                .map(response::encodeURL)
                                .collect(Collectors.joining(" "))));
        callAs(server, "0123456789ABCDEF");
        assertThat(text(callAs(server, "SECOND"))).isEqualTo("/? /a? /ab? /abc? /abcd?");
    }

    /** As in Jetty. */
    @Test
    void sessionThatReplacesOneOfTheSameLengthIsNotGivenToAnother() {
        ServletServer server = serveWithUrls(
                (url, session) -> url.replaceFirst("=STALE", "=" + session),
                (request, response) -> respond(response, 201, response.encodeURL("/payments/1;jsessionid=STALE")));
        assertThat(text(callAs(server, "FIRST"))).isEqualTo("/payments/1;jsessionid=FIRST");
        assertThat(text(callAs(server, "SECOND"))).isEqualTo("/payments/1");
    }
}
