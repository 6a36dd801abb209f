package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.container.Http.request;
import static io.idempotence.it.container.Http.send;
import static io.idempotence.it.container.Http.text;
import static io.idempotence.it.wire.Latches.awaitLatch;
import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.it.container.Container;
import io.idempotence.it.container.Http;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.ServletServer.Handler;
import io.idempotence.server.Idempotence;
import io.idempotence.server.servlet.BodyComparison;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.MultipartConfigElement;
import jakarta.servlet.ReadListener;
import jakarta.servlet.ServletInputStream;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests of what makes two requests under one ID the same. */
class FingerprintIT extends FilterTestBase {
    @Test
    @DisplayName("T4: another request under the same ID neither runs nor replays")
    void anotherRequestUnderTheSameIdNeitherRunsNorReplays() {
        ServletServer server = serve((request, response) -> respond(response, 200, "secret of the first"));
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

    @Test
    void anotherMultipartBoundaryOrAGzippedBodyIsTheSameRequest() throws IOException {
        ServletServer server = serve((request, response) -> respond(response, 200, text(request)));
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
    @DisplayName("parts that the container parses reach the handler and are compared")
    void partsParsedByTheContainerReachTheHandlerAndAreCompared() {
        multipart = new MultipartConfigElement("");
        ServletServer server = serve((request, response) -> respond(
                response,
                200,
                request.getParameter("note") + " "
                        + new String(request.getPart("file").getInputStream().readAllBytes(), StandardCharsets.UTF_8)));
        HttpResponse<byte[]> first = sendMultipart(server, "AaB03x", "file content");
        assertThat(text(first)).isEqualTo("hello file content");
        assertSameResponse(first, sendMultipart(server, "OtherBoundary", "file content"));
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

    @Test
    void twoIdsWithEqualBodiesAreTwoRequests() {
        ServletServer server = serve((request, response) -> respond(response, 200, "ok"));
        call(server);
        assertThat(replayed(post(server.uri("/payments"), UUID.randomUUID().toString(), "{\"amount\":5}")))
                .isFalse();
        assertThat(runs).hasValue(2);
    }

    @Test
    @DisplayName("T3, T4: another request is refused as such (422) while the first still runs (409)")
    void anotherRequestIsRefusedAsSuchWhileTheFirstStillRuns() throws Exception {
        CountDownLatch mayEnd = new CountDownLatch(1);
        CountDownLatch started = new CountDownLatch(1);
        ServletServer server = serve((request, response) -> {
            started.countDown();
            awaitLatch(mayEnd);
            respond(response, 200, "ok");
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

    /** As a caller needs it that writes the members of its JSON in any order. */
    @Test
    void jsonMayBeComparedByItsMeaning() {
        ServletServer server = serve(
                (request, response) -> respond(response, 200, text(request)),
                filter -> filter.bodyComparison(BodyComparison.canonicalJson()));
        String type = "application/json";
        HttpResponse<byte[]> first = post(server.uri("/pay"), id, "{\"amount\":5,\"to\":\"a\"}", "Content-Type", type);
        HttpResponse<byte[]> second =
                post(server.uri("/pay"), id, "{ \"to\": \"a\", \"amount\": 5 }", "Content-Type", type);
        assertSameResponse(first, second);
        assertThat(refusal(post(server.uri("/pay"), id, "{\"amount\":6,\"to\":\"a\"}", "Content-Type", type)))
                .isEqualTo("key-reused");
    }

    @Test
    void aChunkedFormThatAFilterInFrontHasParsedIsStillCompared() {
        ServletServer server =
                serveBehindAParserOfForms((request, response) -> respond(response, 200, request.getParameter("a")));
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

    @Test
    void theTextOfABoundaryInsideTheContentIsContent() {
        ServletServer server = serve((request, response) -> respond(response, 200, "ok"));
        for (String content : List.of("pay --%s100", "pay\r\n--%s100", "pay\n--%s\r\n100")) {
            String key = UUID.randomUUID().toString();
            assertThat(sendMixed(server, key, "x", String.format(content, "x")).statusCode())
                    .isEqualTo(200);
            assertThat(refusal(sendMixed(server, key, "y", String.format(content, "y"))))
                    .as(content)
                    .isEqualTo("key-reused");
            assertThat(replayed(sendMixed(server, key, "y", String.format(content, "x"))))
                    .as(content)
                    .isTrue();
        }
    }

    private static HttpResponse<byte[]> sendMixed(ServletServer server, String key, String boundary, String content) {
        String body = "--" + boundary + "  \r\n\r\n" + content + "\r\n--" + boundary + "--\r\n";
        return post(server.uri("/p"), key, body, "Content-Type", "multipart/mixed; boundary=" + boundary);
    }

    /** A container that refuses parts for their size says so with the exception of a servlet without multipart configuration. */
    @Test
    void partsThatAreTooLargeForTheContainerGetItsResponse() {
        multipart = new MultipartConfigElement("", 1_000, 1_000, 0);
        Handler handler =
                (request, response) -> respond(response, 200, request.getParts().size() + " parts");
        int bare = upload(start(handler, context -> {}), "x".repeat(5_000)).statusCode();
        ServletServer server = serve(handler);
        assertThat(upload(server, "small").statusCode()).isEqualTo(200);
        // Last: the container may close a connection whose request it did not read to its end.
        assertThat(upload(server, "x".repeat(5_000)).statusCode())
                .isEqualTo(bare)
                .isGreaterThanOrEqualTo(400);
    }

    private HttpResponse<byte[]> upload(ServletServer server, String content) {
        String body =
                "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n" + content + "\r\n--b--\r\n";
        return post(
                server.uri("/upload"), id + content.length(), body, "Content-Type", "multipart/form-data; boundary=b");
    }

    @Test
    @DisplayName(
            "P5: a body that a filter in front has read, and that cannot be compared, is refused however it was sent")
    void aBodyThatWasReadInFrontIsRefusedHoweverItWasSent() {
        ServletServer server = serveBehind(
                (request, response, chain) -> {
                    if (request.getParameter("read") != null) {
                        request.getInputStream().readAllBytes();
                    }
                    chain.doFilter(request, response);
                },
                (request, response) -> respond(response, 200, "paid"));
        assertThat(chunked(server, "/p?read=1", "5\r\n12345\r\n0\r\n\r\n")).startsWith("HTTP/1.1 500");
        assertThat(post(server.uri("/p?read=1"), id, "12345").statusCode()).isEqualTo(500);
        assertThat(runs).hasValue(0);
        assertThat(chunked(server, "/p", "0\r\n\r\n"))
                .as("nothing was sent, and nobody has read it")
                .startsWith("HTTP/1.1 200");
        assertThat(runs).hasValue(1);
    }

    private String chunked(ServletServer server, String path, String body) {
        return Http.raw(
                server.port(),
                "POST " + path
                        + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: text/plain\r\nIdempotency-Key: "
                        + id + "\r\nTransfer-Encoding: chunked\r\n\r\n" + body);
    }

    @Test
    @DisplayName("P5: a form that a filter in front has read as a stream is refused, for it cannot be compared")
    void aFormThatWasReadAsAStreamInFrontIsRefused() {
        ServletServer server = serveBehind(
                (request, response, chain) -> {
                    if (((HttpServletRequest) request).getRequestURI().equals("/read")) {
                        request.getInputStream().readAllBytes();
                    }
                    chain.doFilter(request, response);
                },
                (request, response) -> respond(response, 200, "paid"));
        String form = "application/x-www-form-urlencoded";
        assertThat(post(server.uri("/read"), id, "a=1", "Content-Type", form).statusCode())
                .isEqualTo(500);
        assertThat(post(server.uri("/read?b=1&c"), id, "a=1", "Content-Type", form)
                        .statusCode())
                .isEqualTo(500);
        assertThat(sendForm(server, "/read", "Transfer-Encoding: chunked\r\n\r\n3\r\na=1\r\n0\r\n\r\n"))
                .startsWith("HTTP/1.1 500");
        assertThat(runs).hasValue(0);
        List<String> empty =
                List.of("Content-Length: 0\r\n\r\n", "\r\n", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
        for (String headers : empty) {
            assertThat(sendForm(server, "/p" + empty.indexOf(headers) + "?b=1", headers))
                    .as("nothing was sent, and nobody has read it")
                    .startsWith("HTTP/1.1 200");
        }
        assertThat(runs).hasValue(3);
    }

    private static String sendForm(ServletServer server, String path, String rest) {
        return Http.raw(
                server.port(),
                "POST " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nIdempotency-Key: \"" + path
                        + "\"\r\nContent-Type: application/x-www-form-urlencoded\r\n" + rest);
    }

    @Test
    @DisplayName("an empty body in chunks is compared as empty behind a filter that passes on a request to read again")
    void anEmptyBodyThatCanBeReadAgainIsComparedAsEmpty() {
        ServletServer server = serveBehind(
                (request, response, chain) -> chain.doFilter(new ReadableAgain((HttpServletRequest) request), response),
                (request, response) -> respond(response, 200, "paid"));
        assertThat(chunked(server, "/p", "0\r\n\r\n")).startsWith("HTTP/1.1 200");
        assertThat(chunked(server, "/p", "0\r\n\r\n"))
                .startsWith("HTTP/1.1 200")
                .contains("Idempotent-Replayed: true");
        assertThat(chunked(server, "/p", "5\r\n12345\r\n0\r\n\r\n")).startsWith("HTTP/1.1 422");
        assertThat(runs).hasValue(1);
    }

    /** A request whose body was read, and can be read again. */
    static final class ReadableAgain extends HttpServletRequestWrapper {
        private final ByteArrayInputStream body;

        ReadableAgain(HttpServletRequest request) throws IOException {
            super(request);
            this.body = new ByteArrayInputStream(request.getInputStream().readAllBytes());
        }

        @Override
        public ServletInputStream getInputStream() {
            return new ServletInputStream() {
                @Override
                public boolean isFinished() {
                    return body.available() == 0;
                }

                @Override
                public boolean isReady() {
                    return true;
                }

                @Override
                public void setReadListener(ReadListener listener) {
                    throw new IllegalStateException("not in these tests");
                }

                @Override
                public int read() {
                    return body.read();
                }
            };
        }
    }

    @Test
    @DisplayName("P5: queries whose bytes are not text are different requests if their bytes differ")
    void undecodableQueriesAreComparedByTheirBytes() {
        ServletServer server = serve((request, response) -> respond(response, 200, "ok"));
        assertThat(post(server.uri("/p?to=Ren%E9"), id, "").statusCode()).isEqualTo(200);
        assertThat(refusal(post(server.uri("/p?to=Ren%E8"), id, ""))).isEqualTo("key-reused");
        assertThat(replayed(post(server.uri("/p?to=Ren%e9"), id, ""))).isTrue();
        assertThat(runs).hasValue(1);
    }

    @Test
    @DisplayName("P5: a form that was parsed in front and could not be decoded is refused, for it cannot be compared")
    void undecodableFormThatWasParsedInFrontIsRefused() {
        ServletServer server =
                serveBehindAParserOfForms((request, response) -> respond(response, 200, request.getParameter("a")));
        String form = "application/x-www-form-urlencoded;charset=utf-8";
        assertThat(post(server.uri("/p"), id, "a=Ren%E9", "Content-Type", form).statusCode())
                .isGreaterThanOrEqualTo(400);
        assertThat(post(server.uri("/p"), id, "a=Ren%E8", "Content-Type", form).statusCode())
                .isGreaterThanOrEqualTo(400);
        assertThat(runs).hasValue(0);
    }

    @ParameterizedTest(name = "{0} in {1}")
    @CsvSource({
        "text,UTF-8",
        "text,US-ASCII",
        "part,UTF-8",
        "part,US-ASCII",
        "name,UTF-8",
        "file,UTF-8",
        "type,UTF-8",
        "header,UTF-8",
        "header name,UTF-8"
    })
    @DisplayName("P5: parts that the container could not decode are refused if it does not keep their bytes")
    void undecodablePartsOfTwoRequestsLookedTheSame(String what, String encoding) {
        multipart = new MultipartConfigElement("");
        Idempotence idempotence = idempotence();
        ServletServer server = start(
                (request, response) -> respond(response, 200, request.getParts().size() + " parts"), context -> {
                    inFront(context, (request, response, chain) -> {
                        request.setCharacterEncoding(encoding);
                        chain.doFilter(request, response);
                    });
                    IdempotenceFilter.install(context, idempotence);
                });
        HttpResponse<byte[]> first = sendPart(server, id, what, encoding, "Ren\u00e9");
        HttpResponse<byte[]> second = sendPart(server, id, what, encoding, "Ren\u00e8");
        boolean keepsBytes = container != Container.UNDERTOW && (what.equals("text") || what.equals("part"));
        if (keepsBytes) {
            assertThat(first.statusCode()).isEqualTo(200);
            assertThat(refusal(second)).isEqualTo("key-reused");
        } else {
            assertThat(replayed(second)).isFalse();
            assertThat(second.statusCode()).isGreaterThanOrEqualTo(400);
        }
        assertThat(runs).hasValueLessThanOrEqualTo(1);
        assertThat(sendPart(server, UUID.randomUUID().toString(), what, encoding, "Rene?")
                        .statusCode())
                .isEqualTo(200);
    }

    private static HttpResponse<byte[]> sendPart(
            ServletServer server, String key, String what, String encoding, String text) {
        String part = switch (what) {
            case "text" -> "name=\"to\"\r\n\r\n" + text;
            case "part" -> "name=\"to\"\r\nContent-Type: text/plain;charset=" + encoding + "\r\n\r\n" + text;
            case "name" -> "name=\"" + text + "\"\r\n\r\n1";
            case "header" -> "name=\"to\"; filename=\"f\"\r\nX-Signature: " + text + "\r\n\r\n1";
            case "header name" -> "name=\"to\"; filename=\"f\"\r\nX-" + text.replace('?', 'e') + ": 1\r\n\r\n1";
            case "file" -> "name=\"to\"; filename=\"" + text + "\"\r\nContent-Type: text/plain\r\n\r\n1";
            default -> "name=\"to\"; filename=\"f\"\r\nContent-Type: text/plain;x=\"" + text + "\"\r\n\r\n1";
        };
        String body = "--b\r\nContent-Disposition: form-data; " + part + "\r\n--b--\r\n";
        return Http.sendOverNewConnection(HttpRequest.newBuilder(server.uri("/p?to=Ren%E9"))
                .header("Idempotency-Key", key)
                .header("Content-Type", "multipart/form-data; boundary=b")
                .POST(HttpRequest.BodyPublishers.ofByteArray(body.getBytes(StandardCharsets.ISO_8859_1)))
                .build());
    }
}
