package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.container.Http.request;
import static io.idempotence.it.container.Http.send;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.http.HeaderVector;
import io.idempotence.it.container.Http;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.ServletServer.Handler;
import io.idempotence.server.FailureRule;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.Verdict;
import io.idempotence.server.redis.EmbeddedRedis;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.FilterRegistration;
import jakarta.servlet.MultipartConfigElement;
import jakarta.servlet.ReadListener;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletInputStream;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.ServletRegistration;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.Cookie;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.security.Principal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.UnaryOperator;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What {@link IdempotenceFilter} promises in every container: the rules of the protocol, over sockets, on a real Redis. The numbers are
 * those of "Rules that peers break".
 */
abstract class FilterContract {
    private static EmbeddedRedis redis;

    private final AtomicInteger runs = new AtomicInteger();
    private final List<IdempotenceEvent> events = new CopyOnWriteArrayList<>();
    private final ExecutorService executor = Executors.newCachedThreadPool();
    private final List<AutoCloseable> toClose = new ArrayList<>();
    private final String id = UUID.randomUUID().toString();
    private IdempotencePolicy policy;
    private String errorPage;
    private boolean multipart;

    abstract ServletServer.Starter starter();

    @BeforeAll
    static void startRedis() {
        redis = EmbeddedRedis.start();
    }

    @AfterAll
    static void stopRedis() {
        redis.close();
    }

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
        assertThat(executor.awaitTermination(10, TimeUnit.SECONDS)).isTrue();
    }

    private Idempotence idempotence() {
        Idempotence idempotence = Idempotence.builder(RedisIdempotenceStorage.connect(redis.address()))
                .namespace("t-" + UUID.randomUUID())
                .policy(policy)
                .listener((event, which) -> events.add(event))
                .build();
        toClose.add(idempotence);
        return idempotence;
    }

    private ServletServer serve(Handler handler) {
        return serve(handler, filter -> filter);
    }

    private ServletServer serve(Handler handler, UnaryOperator<IdempotenceFilter.Builder> options) {
        Idempotence idempotence = idempotence();
        return start(
                handler,
                context -> options.apply(IdempotenceFilter.builder(idempotence))
                        .build()
                        .install(context));
    }

    private ServletServer start(Handler handler, java.util.function.Consumer<jakarta.servlet.ServletContext> filters) {
        ServletServer server = starter()
                .start(
                        context -> {
                            filters.accept(context);
                            ServletRegistration.Dynamic servlet =
                                    context.addServlet("handler", ServletServer.servlet(counted(handler)));
                            servlet.setAsyncSupported(true);
                            servlet.addMapping("/*");
                            if (multipart) {
                                servlet.setMultipartConfig(new MultipartConfigElement(""));
                            }
                        },
                        errorPage);
        toClose.add(server);
        return server;
    }

    private Handler counted(Handler handler) {
        return (request, response) -> {
            if (request.getDispatcherType() == DispatcherType.REQUEST) {
                runs.incrementAndGet();
            }
            handler.handle(request, response);
        };
    }

    private static void answer(HttpServletResponse response, int status, String body) throws IOException {
        response.setStatus(status);
        response.setContentType("text/plain;charset=utf-8");
        response.getOutputStream().write(body.getBytes(StandardCharsets.UTF_8));
    }

    private HttpResponse<byte[]> call(ServletServer server) {
        return post(server.uri("/payments"), id, "{\"amount\":5}");
    }

    private void assertSameAnswer(HttpResponse<byte[]> first, HttpResponse<byte[]> second) {
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

    private void awaitReplay(ServletServer server, HttpResponse<byte[]> first) {
        AtomicReference<HttpResponse<byte[]>> second = new AtomicReference<>();
        await().until(() -> {
            second.set(call(server));
            return !"in-progress".equals(refusal(second.get()));
        });
        assertSameAnswer(first, second.get());
    }

    // ---- the answer

    @Test
    void secondRequestGetsTheFirstOnesAnswerByteForByte() {
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
        assertSameAnswer(first, second);
        assertThat(runs).hasValue(1);
        assertThat(events).containsExactly(IdempotenceEvent.CLAIMED, IdempotenceEvent.REPLAYED);
    }

    @Test
    void emptyAnswersReplay() {
        ServletServer server = serve((request, response) -> response.setStatus(204));
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(204);
        assertSameAnswer(first, call(server));
        assertThat(runs).hasValue(1);
    }

    @ParameterizedTest
    @ValueSource(strings = {"text/plain", "application/json", "text/html;charset=utf-8", "text/plain;charset=utf-16"})
    void firstAnswerByWriterIsWhatItIsWithoutTheFilter(String type) {
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
        assertSameAnswer(first, call(server));
    }

    /** Rule 11 */
    @Test
    void firstAnswersHeadersAreWhatTheyAreWithoutTheFilter() {
        Handler handler = (request, response) -> {
            response.addHeader("X-One", "1");
            response.addHeader("X-Two", "a");
            response.addHeader("X-Two", "b");
            response.addCookie(new Cookie("session", "s"));
            answer(response, 200, "body");
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

    /** Rule 10 */
    @Test
    void headersOfOneCallerOrMomentAreNotReplayed() {
        ServletServer server = serve(
                (request, response) -> {
                    response.addCookie(new Cookie("session", "secret"));
                    response.setHeader("X-RateLimit-Remaining", "1");
                    response.setHeader("X-Trace-Id", "t");
                    response.setHeader("WWW-Authenticate", "Basic");
                    response.setHeader("X-Payment", "p");
                    answer(response, 200, "ok");
                },
                filter -> filter.keepHeaders("X-Payment"));
        HttpResponse<byte[]> first = call(server);
        assertThat(first.headers().firstValue("Set-Cookie")).isPresent();
        HttpResponse<byte[]> second = call(server);
        assertThat(second.headers().map().keySet())
                .doesNotContain("set-cookie", "x-ratelimit-remaining", "x-trace-id", "www-authenticate");
        assertThat(second.headers().firstValue("X-Payment")).contains("p");
        assertSameAnswer(first, second);
    }

    @Test
    void aHandlerCannotPassItsAnswerOffAsTheFrameworks() {
        ServletServer server = serve((request, response) -> {
            response.setHeader("Idempotent-Replayed", "true");
            response.addHeader("Idempotency-Refusal", "in-progress");
            answer(response, 200, "ok");
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(replayed(first)).isFalse();
        assertThat(refusal(first)).isNull();
    }

    // ---- which requests

    /** Rule 16 */
    @ParameterizedTest
    @ValueSource(strings = {"GET", "OPTIONS"})
    void safeMethodsIgnoreTheHeader(String method) {
        ServletServer server = serve((request, response) -> answer(response, 200, "run " + runs.get()));
        send(request(method, server.uri("/x"), id, ""));
        HttpResponse<byte[]> second = send(request(method, server.uri("/x"), id, ""));
        assertThat(runs).hasValue(2);
        assertThat(replayed(second)).isFalse();
    }

    /** Rule 16, P6: whoever sends an ID relies on it. */
    @ParameterizedTest
    @ValueSource(strings = {"PUT", "DELETE"})
    void putAndDeleteAreProtectedWhenTheyCarryAnId(String method) {
        ServletServer server = serve((request, response) -> answer(response, 200, "ok"));
        send(request(method, server.uri("/x"), null, "a"));
        send(request(method, server.uri("/x"), null, "a"));
        assertThat(runs).hasValue(2);
        send(request(method, server.uri("/x"), id, "a"));
        assertThat(replayed(send(request(method, server.uri("/x"), id, "a")))).isTrue();
        assertThat(runs).hasValue(3);
    }

    /** Rule 16 */
    @Test
    void putRequiresAnIdOnRequest() {
        ServletServer server = serve((request, response) -> answer(response, 200, "ok"), f -> f.methods("PUT", "POST"));
        assertThat(refusal(send(request("PUT", server.uri("/x"), null, "a")))).isEqualTo("key-missing");
        assertThat(runs).hasValue(0);
    }

    @Test
    void aMissingKeyIsRefused() {
        ServletServer server = serve((request, response) -> answer(response, 200, "ok"));
        HttpResponse<byte[]> response = post(server.uri("/payments"), null, "{}");
        assertThat(response.statusCode()).isEqualTo(400);
        assertThat(refusal(response)).isEqualTo("key-missing");
        assertThat(response.headers().firstValue("Content-Type").orElseThrow()).startsWith("application/problem+json");
        assertThat(response.headers().firstValue("Cache-Control")).contains("no-store");
        assertThat(text(response))
                .startsWith("{\"type\":\"urn:idempotence:problem:key-missing\",")
                .contains("\"status\":400", "\"retryable\":false", "\"safeNewId\":true", "new UUID");
        assertThat(runs).hasValue(0);
    }

    @Test
    void aMissingKeyPassesThroughOnRequest() {
        ServletServer server =
                serve((request, response) -> answer(response, 200, "ok"), IdempotenceFilter.Builder::keyOptional);
        assertThat(post(server.uri("/payments"), null, "{}").statusCode()).isEqualTo(200);
        assertThat(runs).hasValue(1);
    }

    static List<HeaderVector> vectors() {
        return HeaderVector.all();
    }

    @Test
    void everyHeaderVectorIsReadOverTheWire() {
        ServletServer server = serve((request, response) -> answer(response, 200, "ok"));
        for (HeaderVector vector : vectors()) {
            StringBuilder head = new StringBuilder(
                    "POST /payments HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n");
            vector.lines()
                    .forEach(line ->
                            head.append("Idempotency-Key: ").append(line).append("\r\n"));
            int before = runs.get();
            String answer = Http.raw(server.port(), head + "\r\n");
            if (vector.accepted()) {
                assertThat(answer).as("%s", vector).startsWith("HTTP/1.1 200");
            } else {
                assertThat(answer).as("%s", vector).startsWith("HTTP/1.1 400");
                assertThat(runs).as("%s", vector).hasValue(before);
            }
        }
    }

    @Test
    void anInvalidKeyIsNeverIgnored() {
        ServletServer server =
                serve((request, response) -> answer(response, 200, "ok"), IdempotenceFilter.Builder::keyOptional);
        HttpResponse<byte[]> response = post(server.uri("/payments"), "not a key", "{}");
        assertThat(response.statusCode()).isEqualTo(400);
        assertThat(refusal(response)).isEqualTo("key-invalid");
        assertThat(text(response)).doesNotContain("not a key");
        HttpResponse<byte[]> twice = send(request("POST", server.uri("/payments"), id, "{}", "Idempotency-Key", id));
        assertThat(refusal(twice)).isEqualTo("key-invalid");
        assertThat(runs).hasValue(0);
    }

    @Test
    void quotedAndBareAreTheSameId() {
        ServletServer server = serve((request, response) -> answer(response, 200, "ok"));
        call(server);
        assertThat(replayed(post(server.uri("/payments"), '"' + id + '"', "{\"amount\":5}")))
                .isTrue();
        assertThat(runs).hasValue(1);
    }

    // ---- fingerprint

    /** Rule 7 */
    @Test
    void anotherRequestUnderTheSameIdNeitherRunsNorReplays() {
        ServletServer server = serve((request, response) -> answer(response, 200, "secret of the first"));
        post(server.uri("/accounts/1/charge?a=1&b=2"), id, "body", "Content-Type", "text/plain");
        List<HttpResponse<byte[]>> others = List.of(
                post(server.uri("/accounts/2/charge?a=1&b=2"), id, "body", "Content-Type", "text/plain"),
                post(server.uri("/accounts/1/charge?a=1&b=3"), id, "body", "Content-Type", "text/plain"),
                post(server.uri("/accounts/1/charge?a=1"), id, "body", "Content-Type", "text/plain"),
                post(server.uri("/accounts/1/charge?a=1&b=2"), id, "bodY", "Content-Type", "text/plain"),
                post(server.uri("/accounts/1/charge?a=1&b=2"), id, "body", "Content-Type", "text/csv"),
                send(request(
                        "PATCH", server.uri("/accounts/1/charge?a=1&b=2"), id, "body", "Content-Type", "text/plain")));
        assertThat(others).allSatisfy(response -> {
            assertThat(response.statusCode()).isEqualTo(422);
            assertThat(refusal(response)).isEqualTo("key-reused");
            assertThat(text(response)).doesNotContain("secret").doesNotContain(id);
        });
        assertThat(runs).hasValue(1);
        assertThat(replayed(post(
                        server.uri("/accounts/1/charge?b=2&a=%31"),
                        id,
                        "body",
                        "Content-Type",
                        "Text/Plain; charset=utf-8")))
                .isTrue();
    }

    /** Rule 7 */
    @Test
    void anotherMultipartBoundaryOrAGzippedBodyIsTheSameRequest() throws IOException {
        ServletServer server = serve((request, response) -> answer(response, 200, text(request)));
        sendMultipart(server, "AaB03x", "file content");
        assertThat(replayed(sendMultipart(server, "OtherBoundary", "file content")))
                .isTrue();
        assertThat(refusal(sendMultipart(server, "AaB03x", "other content"))).isEqualTo("key-reused");

        String other = UUID.randomUUID().toString();
        byte[] plain = "{\"amount\":5}".getBytes(StandardCharsets.UTF_8);
        HttpRequest.Builder builder = HttpRequest.newBuilder(server.uri("/p")).header("Idempotency-Key", other);
        send(builder.copy().POST(HttpRequest.BodyPublishers.ofByteArray(plain)).build());
        ByteArrayOutputStream zipped = new ByteArrayOutputStream();
        try (GZIPOutputStream out = new GZIPOutputStream(zipped)) {
            out.write(plain);
        }
        assertThat(replayed(send(builder.copy()
                        .header("Content-Encoding", "gzip")
                        .POST(HttpRequest.BodyPublishers.ofByteArray(zipped.toByteArray()))
                        .build())))
                .isTrue();
        assertThat(runs).hasValue(2);
    }

    @Test
    void partsParsedByTheContainerReachTheHandlerAndAreCompared() {
        multipart = true;
        ServletServer server = serve((request, response) -> answer(
                response,
                200,
                request.getParameter("note") + " "
                        + new String(request.getPart("file").getInputStream().readAllBytes(), StandardCharsets.UTF_8)));
        HttpResponse<byte[]> first = sendMultipart(server, "AaB03x", "file content");
        assertThat(text(first)).isEqualTo("hello file content");
        assertSameAnswer(first, sendMultipart(server, "OtherBoundary", "file content"));
        assertThat(refusal(sendMultipart(server, "AaB03x", "other content"))).isEqualTo("key-reused");
        assertThat(runs).hasValue(1);
    }

    private HttpResponse<byte[]> sendMultipart(ServletServer server, String boundary, String content) {
        String body =
                "--" + boundary + "\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nhello\r\n--" + boundary
                        + "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f.txt\"\r\nContent-Type: text/plain\r\n\r\n"
                        + content + "\r\n--" + boundary + "--\r\n";
        return post(server.uri("/upload"), id, body, "Content-Type", "multipart/form-data; boundary=" + boundary);
    }

    private static String text(HttpServletRequest request) throws IOException {
        return new String(request.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    }

    private static String text(HttpResponse<byte[]> response) {
        return Http.text(response);
    }

    /** Rule 8 */
    @Test
    void twoIdsWithEqualBodiesAreTwoRequests() {
        ServletServer server = serve((request, response) -> answer(response, 200, "ok"));
        call(server);
        assertThat(replayed(post(server.uri("/payments"), UUID.randomUUID().toString(), "{\"amount\":5}")))
                .isFalse();
        assertThat(runs).hasValue(2);
    }

    /** Rule 9 */
    @Test
    void anotherRequestIsRefusedAsSuchWhileTheFirstStillRuns() throws Exception {
        CountDownLatch mayEnd = new CountDownLatch(1);
        CountDownLatch started = new CountDownLatch(1);
        ServletServer server = serve((request, response) -> {
            started.countDown();
            awaitLatch(mayEnd);
            answer(response, 200, "ok");
        });
        CompletableFuture<HttpResponse<byte[]>> first =
                Http.sendAsync(request("POST", server.uri("/payments"), id, "{\"amount\":5}"));
        awaitLatch(started);
        HttpResponse<byte[]> same = call(server);
        assertThat(same.statusCode()).isEqualTo(409);
        assertThat(refusal(same)).isEqualTo("in-progress");
        assertThat(same.headers().firstValueAsLong("Retry-After")).hasValue(1);
        assertThat(same.headers().firstValueAsLong("Retry-After-Ms").orElseThrow())
                .isBetween(20L, 1000L);
        assertThat(text(same)).contains("\"retryable\":true", "\"safeNewId\":false");
        assertThat(refusal(post(server.uri("/payments"), id, "{\"amount\":6}"))).isEqualTo("key-reused");
        mayEnd.countDown();
        assertThat(first.get().statusCode()).isEqualTo(200);
        assertThat(replayed(call(server))).isTrue();
        assertThat(runs).hasValue(1);
    }

    // ---- the request reaches the handler

    @Test
    void bodyReaderAndFormParametersReachTheHandler() {
        ServletServer server = serve((request, response) -> {
            String answer;
            if (request.getRequestURI().equals("/reader")) {
                answer = request.getReader().readLine();
            } else if (request.getRequestURI().equals("/form")) {
                answer = Arrays.toString(request.getParameterValues("a"))
                        + request.getParameter("b")
                        + request.getParameter("none");
            } else {
                answer = text(request);
            }
            answer(response, 200, answer);
        });
        assertThat(text(post(server.uri("/stream"), "k1", "grüße"))).isEqualTo("grüße");
        assertThat(text(post(server.uri("/reader"), "k2", "grüße", "Content-Type", "text/plain;charset=utf-8")))
                .isEqualTo("grüße");
        assertThat(text(post(
                        server.uri("/form?a=1"),
                        "k3",
                        "a=2&a=3+4&b=%C3%BC&%zz",
                        "Content-Type",
                        "application/x-www-form-urlencoded;charset=utf-8")))
                .isEqualTo("[1, 2, 3 4]ünull");
    }

    @Test
    void aFormThatAFilterInFrontHasParsedIsStillComparedAndServed() {
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
        String form = "application/x-www-form-urlencoded";
        assertThat(text(post(server.uri("/p"), id, "a=1", "Content-Type", form)))
                .isEqualTo("1");
        assertThat(replayed(post(server.uri("/p"), id, "a=1", "Content-Type", form)))
                .isTrue();
        assertThat(refusal(post(server.uri("/p"), id, "a=2", "Content-Type", form)))
                .isEqualTo("key-reused");
    }

    @Test
    void aFormOfTooManyParametersIsNotParsed() {
        ServletServer server = serve((request, response) -> answer(response, 200, request.getParameter("a")));
        String form = "application/x-www-form-urlencoded";
        assertThat(post(server.uri("/p"), "k1", "a=1&".repeat(1000), "Content-Type", form)
                        .statusCode())
                .isEqualTo(200);
        assertThat(post(server.uri("/p"), "k2", "a=1&".repeat(1001), "Content-Type", form)
                        .statusCode())
                .isGreaterThanOrEqualTo(400);
    }

    /** Rule 14 */
    @Test
    void aRequestBodyOverItsCapIsNotRun() {
        ServletServer server = serve((request, response) -> answer(response, 200, "ok"), f -> f.maxRequestBody(10));
        assertThat(post(server.uri("/p"), "k1", "0123456789").statusCode()).isEqualTo(200);
        HttpResponse<byte[]> tooLarge = post(server.uri("/p"), "k2", "0123456789a");
        assertThat(tooLarge.statusCode()).isEqualTo(413);
        assertThat(text(tooLarge)).contains("up to 10 bytes");
        String chunked = "POST /p HTTP/1.1\r\nHost: x\r\nConnection: close\r\nIdempotency-Key: k3\r\n"
                + "Transfer-Encoding: chunked\r\n\r\nb\r\n0123456789a\r\n0\r\n\r\n";
        assertThat(Http.raw(server.port(), chunked)).startsWith("HTTP/1.1 413");
        assertThat(runs).hasValue(1);
    }

    // ---- outcome policy

    @ParameterizedTest
    @ValueSource(ints = {400, 403, 404, 409, 422})
    void aBusinessFailureKeepsTheId(int status) {
        ServletServer server = serve((request, response) -> answer(response, status, "no " + runs.get()));
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(status);
        assertSameAnswer(first, call(server));
        assertThat(runs).hasValue(1);
    }

    @ParameterizedTest
    @ValueSource(ints = {408, 425, 429, 500, 502, 503, 504})
    void aSystemFailureReleasesTheId(int status) {
        ServletServer server = serve((request, response) -> {
            int run = runs.get();
            answer(response, run == 1 ? status : 200, "run " + run);
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(status);
        assertThat(text(first)).isEqualTo("run 1");
        HttpResponse<byte[]> second = call(server);
        assertThat(second.statusCode()).isEqualTo(200);
        assertThat(replayed(second)).isFalse();
        assertThat(text(call(server))).isEqualTo("run 2");
        assertThat(runs).hasValue(2);
    }

    @Test
    void anUncaughtExceptionReleasesTheId() {
        ServletServer server = serve((request, response) -> {
            if (runs.get() == 1) {
                throw new ServletException("database down");
            }
            answer(response, 200, "ok");
        });
        assertThat(call(server).statusCode()).isEqualTo(500);
        assertThat(call(server).statusCode()).isEqualTo(200);
        assertThat(replayed(call(server))).isTrue();
        assertThat(runs).hasValue(2);
    }

    @Test
    void storeEverythingReplaysA500Too() {
        policy = IdempotencePolicy.builder()
                .failureRule(FailureRule.STORE_EVERYTHING)
                .build();
        ServletServer server = serve((request, response) -> answer(response, 500, "run " + runs.get()));
        HttpResponse<byte[]> first = call(server);
        assertSameAnswer(first, call(server));
        assertThat(runs).hasValue(1);
    }

    @Test
    void storeEverythingReplaysAnUncaughtExceptionToo() {
        policy = IdempotencePolicy.builder()
                .failureRule(FailureRule.STORE_EVERYTHING)
                .build();
        ServletServer server = serve((request, response) -> {
            throw new IllegalStateException("broken");
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(500);
        await().until(() -> replayed(call(server)));
        assertThat(call(server).statusCode()).isEqualTo(500);
        assertThat(runs).hasValue(1);
    }

    @Test
    void storeSuccessOnlyReleasesA404() {
        policy = IdempotencePolicy.builder()
                .failureRule(FailureRule.STORE_SUCCESS_ONLY)
                .build();
        ServletServer server = serve((request, response) -> answer(response, runs.get() == 1 ? 404 : 200, "x"));
        assertThat(call(server).statusCode()).isEqualTo(404);
        assertThat(call(server).statusCode()).isEqualTo(200);
        assertThat(replayed(call(server))).isTrue();
    }

    @Test
    void oneStatusCanBeDecidedByItself() {
        policy = IdempotencePolicy.builder()
                .status(503, Verdict.UNKNOWN)
                .status(404, Verdict.RELEASE)
                .build();
        ServletServer server = serve(
                (request, response) -> answer(response, request.getRequestURI().equals("/a") ? 404 : 503, "x"));
        post(server.uri("/a"), "k1", "");
        post(server.uri("/a"), "k1", "");
        assertThat(runs).hasValue(2);
        post(server.uri("/b"), "k2", "");
        assertThat(refusal(post(server.uri("/b"), "k2", ""))).isEqualTo("outcome-unknown");
        assertThat(runs).hasValue(3);
    }

    @Test
    void theHandlerDecidesAtRunTime() {
        ServletServer server = serve((request, response) -> {
            var execution = IdempotenceFilter.execution(request).orElseThrow();
            switch (request.getRequestURI()) {
                case "/keep" -> execution.keep();
                case "/release" -> execution.release();
                default -> execution.markUnknown();
            }
            answer(
                    response,
                    request.getRequestURI().equals("/keep") ? 500 : 200,
                    execution.id() + " " + execution.fence());
        });
        HttpResponse<byte[]> kept = post(server.uri("/keep"), "k1", "");
        assertThat(text(kept)).isEqualTo("k1 1");
        assertSameAnswer(kept, post(server.uri("/keep"), "k1", ""));
        assertThat(text(post(server.uri("/release"), "k2", ""))).isEqualTo("k2 1");
        assertThat(text(post(server.uri("/release"), "k2", ""))).isEqualTo("k2 2");
        assertThat(post(server.uri("/unknown"), "k3", "").statusCode()).isEqualTo(200);
        HttpResponse<byte[]> unknown = post(server.uri("/unknown"), "k3", "");
        assertThat(unknown.statusCode()).isEqualTo(409);
        assertThat(refusal(unknown)).isEqualTo("outcome-unknown");
        assertThat(text(unknown)).contains("\"safeNewId\":false");
    }

    // ---- sendError, redirects, error pages

    @Test
    void sendErrorIsReplayedWithTheContainersPage() {
        ServletServer server = serve((request, response) -> response.sendError(404, "no such account"));
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(404);
        awaitReplay(server, first);
        assertThat(runs).hasValue(1);
    }

    @Test
    void theApplicationsErrorPageIsReplayedByteForByte() {
        errorPage = "/error";
        AtomicInteger pages = new AtomicInteger();
        ServletServer server = serve((request, response) -> {
            if (request.getDispatcherType() == DispatcherType.ERROR) {
                response.setContentType("application/json");
                response.getWriter().print("{\"page\":" + pages.incrementAndGet() + "}");
            } else {
                response.sendError(409, "conflict");
            }
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(409);
        assertThat(text(first)).isEqualTo("{\"page\":1}");
        assertSameAnswer(first, call(server));
        assertThat(runs).hasValue(1);
        assertThat(pages).hasValue(1);
    }

    @Test
    void theErrorPageOfAReleasedFailureIsNotRecorded() {
        errorPage = "/error";
        ServletServer server = serve((request, response) -> {
            if (request.getDispatcherType() == DispatcherType.ERROR) {
                response.getWriter().print("error page");
            } else if (runs.get() == 1) {
                throw new IllegalStateException("database down");
            } else {
                answer(response, 200, "ok");
            }
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(500);
        assertThat(text(first)).isEqualTo("error page");
        assertThat(text(call(server))).isEqualTo("ok");
        assertThat(replayed(call(server))).isTrue();
    }

    /** Rule 11 */
    @Test
    void theHandlersOwn503ReachesTheClient() {
        ServletServer server = serve((request, response) -> {
            response.setHeader("Retry-After", "7");
            answer(response, 503, "my own body");
        });
        HttpResponse<byte[]> response = call(server);
        assertThat(text(response)).isEqualTo("my own body");
        assertThat(response.headers().allValues("Retry-After")).containsExactly("7");
        assertThat(refusal(response)).isNull();
    }

    @Test
    void redirectsReplay() {
        ServletServer server = serve((request, response) -> {
            if (request.getRequestURI().equals("/see-other")) {
                response.sendRedirect("/payments/1", 303);
            } else {
                response.sendRedirect("/payments/2");
            }
        });
        HttpResponse<byte[]> found = post(server.uri("/found"), "k1", "");
        assertThat(found.statusCode()).isEqualTo(302);
        assertThat(found.headers().firstValue("Location").orElseThrow()).endsWith("/payments/2");
        assertSameAnswer(found, post(server.uri("/found"), "k1", ""));
        HttpResponse<byte[]> seeOther = post(server.uri("/see-other"), "k2", "");
        assertThat(seeOther.statusCode()).isEqualTo(303);
        assertSameAnswer(seeOther, post(server.uri("/see-other"), "k2", ""));
        assertThat(runs).hasValue(2);
    }

    /** A container may finish its own response when a forward returns; the held answer must still go out. */
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
        assertSameAnswer(first, call(server));
        assertThat(runs).hasValue(1);
    }

    private static void print(HttpServletResponse response, boolean byWriter, String text) throws IOException {
        if (byWriter) {
            response.getWriter().print(text);
        } else {
            response.getOutputStream().print(text);
        }
    }

    // ---- asynchronous handlers (rule 6)

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
        ServletServer server = serve(FilterContract::dispatchTwice);
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
        ServletServer server = start(FilterContract::dispatchTwice, context -> {
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

    // ---- clients that leave, answers that are too large

    /** Rule 12 */
    @Test
    void aClientThatLeavesDoesNotMakeTheHandlerFail() throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch mayEnd = new CountDownLatch(1);
        ServletServer server = serve((request, response) -> {
            started.countDown();
            awaitLatch(mayEnd);
            answer(response, 201, "paid");
        });
        try (Socket socket = new Socket("127.0.0.1", server.port())) {
            String request = "POST /payments HTTP/1.1\r\nHost: 127.0.0.1:" + server.port() + "\r\nIdempotency-Key: "
                    + id + "\r\nContent-Length: 12\r\n\r\n{\"amount\":5}";
            socket.getOutputStream().write(request.getBytes(StandardCharsets.ISO_8859_1));
            socket.getOutputStream().flush();
            awaitLatch(started);
            socket.setSoLinger(true, 0);
        }
        mayEnd.countDown();
        AtomicReference<HttpResponse<byte[]>> retry = new AtomicReference<>();
        await().until(() -> {
            retry.set(call(server));
            return retry.get().statusCode() != 409;
        });
        assertThat(retry.get().statusCode()).isEqualTo(201);
        assertThat(text(retry.get())).isEqualTo("paid");
        assertThat(replayed(retry.get())).isTrue();
        assertThat(runs).hasValue(1);
    }

    /** Rule 13 */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void anAnswerOverTheCapGoesOutAndIsNotKept(boolean byWriter) {
        String part = "0123456789".repeat(100);
        ServletServer server = serve(
                (request, response) -> {
                    response.setContentType("text/plain");
                    for (int i = 0; i < 100; i++) {
                        if (byWriter) {
                            response.getWriter().print(part);
                        } else {
                            response.getOutputStream().print(part);
                        }
                    }
                },
                f -> f.maxResponseBody(10_500));
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(200);
        assertThat(text(first)).isEqualTo(part.repeat(100));
        HttpResponse<byte[]> second = call(server);
        assertThat(second.statusCode()).isEqualTo(409);
        assertThat(refusal(second)).isEqualTo("result-unavailable");
        assertThat(runs).hasValue(1);
        assertThat(events).contains(IdempotenceEvent.OVERSIZE);
    }

    // ---- scope (rules 4, 15)

    /** Rule 15 */
    @Test
    void anotherPrincipalsRecordIsNeverSeen() {
        Idempotence idempotence = idempotence();
        ServletServer server = start(
                (request, response) ->
                        answer(response, 200, request.getUserPrincipal().getName()),
                context -> {
                    FilterRegistration.Dynamic login = context.addFilter("login", (request, response, chain) -> {
                        HttpServletRequest http = (HttpServletRequest) request;
                        String user = http.getHeader("X-User");
                        if (user == null) {
                            ((HttpServletResponse) response).setStatus(401);
                            return;
                        }
                        chain.doFilter(
                                new HttpServletRequestWrapper(http) {
                                    @Override
                                    public Principal getUserPrincipal() {
                                        return () -> user;
                                    }
                                },
                                response);
                    });
                    login.setAsyncSupported(true);
                    login.addMappingForUrlPatterns(EnumSet.of(DispatcherType.REQUEST), true, "/*");
                    IdempotenceFilter.install(context, idempotence);
                });
        assertThat(text(post(server.uri("/p"), id, "", "X-User", "alice"))).isEqualTo("alice");
        HttpResponse<byte[]> bob = post(server.uri("/p"), id, "", "X-User", "bob");
        assertThat(replayed(bob)).isFalse();
        assertThat(text(bob)).isEqualTo("bob");
        assertThat(post(server.uri("/p"), id, "").statusCode()).isEqualTo(401);
        assertThat(replayed(post(server.uri("/p"), id, "", "X-User", "alice"))).isTrue();
        assertThat(runs).hasValue(2);
    }

    /** Rule 4 */
    @Test
    void aNestedCallKeepsItsResultApartFromItsParents() {
        AtomicInteger port = new AtomicInteger();
        ServletServer server = serve((request, response) -> {
            if (request.getRequestURI().equals("/parent")) {
                HttpResponse<byte[]> child =
                        post(java.net.URI.create("http://127.0.0.1:" + port.get() + "/child"), "child-" + id, "");
                answer(response, 200, "parent of " + text(child));
            } else {
                answer(response, 200, "child");
            }
        });
        port.set(server.port());
        assertThat(text(post(server.uri("/parent"), id, ""))).isEqualTo("parent of child");
        assertThat(text(post(server.uri("/parent"), id, ""))).isEqualTo("parent of child");
        assertThat(text(post(server.uri("/child"), "child-" + id, ""))).isEqualTo("child");
        assertThat(runs).hasValue(2);
    }

    // ---- concurrency

    /** Rule 1 */
    @Test
    void aHundredConcurrentDuplicatesRunOnce() {
        ServletServer server = serve((request, response) -> {
            response.setHeader("Location", "/payments/" + UUID.randomUUID());
            answer(response, 201, "paid");
        });
        List<CompletableFuture<HttpResponse<byte[]>>> calls = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            calls.add(Http.sendAsync(request("POST", server.uri("/payments"), id, "{\"amount\":5}")));
        }
        Collection<HttpResponse<byte[]>> answers =
                calls.stream().map(CompletableFuture::join).toList();
        assertThat(runs).hasValue(1);
        assertThat(answers)
                .allSatisfy(answer -> assertThat(answer.statusCode() == 201 || "in-progress".equals(refusal(answer)))
                        .isTrue());
        assertThat(answers.stream()
                        .filter(answer -> answer.statusCode() == 201)
                        .map(answer -> answer.headers().firstValue("Location").orElseThrow())
                        .distinct())
                .hasSize(1);
        assertThat(answers.stream().filter(answer -> answer.statusCode() == 201 && !replayed(answer)))
                .hasSize(1);
    }

    static void awaitLatch(CountDownLatch latch) {
        try {
            assertThat(latch.await(20, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }
}
