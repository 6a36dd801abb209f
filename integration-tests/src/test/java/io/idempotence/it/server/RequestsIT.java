package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.container.Http.request;
import static io.idempotence.it.container.Http.send;
import static io.idempotence.it.container.Http.text;
import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.http.HeaderVector;
import io.idempotence.http.IdempotencyKeyHeader;
import io.idempotence.it.container.Http;
import io.idempotence.it.container.ServletServer;
import io.idempotence.server.servlet.IdempotenceFilterBuilder;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests of which requests are protected, and what their handlers see. */
class RequestsIT extends FilterTestBase {
    @ParameterizedTest
    @ValueSource(strings = {"GET", "HEAD", "OPTIONS", "TRACE"})
    void safeMethodsIgnoreTheHeader(String method) {
        ServletServer server = serve((request, response) -> respond(response, 200, "run " + runs.get()));
        send(request(method, server.uri("/x"), id, ""));
        HttpResponse<byte[]> second = send(request(method, server.uri("/x"), id, ""));
        assertThat(runs).hasValue(2);
        assertThat(second.statusCode()).isEqualTo(200);
        assertThat(replayed(second)).isFalse();
    }

    @ParameterizedTest
    @ValueSource(strings = {"PUT", "DELETE"})
    @DisplayName("P6: PUT and DELETE are protected when they carry an ID: its sender relies on it")
    void putAndDeleteAreProtectedWhenTheyCarryAnId(String method) {
        ServletServer server = serve((request, response) -> respond(response, 200, "ok"));
        send(request(method, server.uri("/x"), null, "a"));
        send(request(method, server.uri("/x"), null, "a"));
        assertThat(runs).hasValue(2);
        send(request(method, server.uri("/x"), id, "a"));
        assertThat(replayed(send(request(method, server.uri("/x"), id, "a")))).isTrue();
        assertThat(runs).hasValue(3);
    }

    @Test
    @DisplayName("PUT requires an ID where it is configured to")
    void putRequiresAnIdOnRequest() {
        ServletServer server =
                serve((request, response) -> respond(response, 200, "ok"), f -> f.methods("PUT", "POST"));
        assertThat(refusal(send(request("PUT", server.uri("/x"), null, "a")))).isEqualTo("key-missing");
        assertThat(runs).hasValue(0);
    }

    @Test
    void aMissingKeyIsRefused() {
        ServletServer server = serve((request, response) -> respond(response, 200, "ok"));
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

    /** Jetty closes the connection then. Another request of the caller must not be on its way already. */
    @Test
    void aRefusalBeforeTheBodyHasComeLeavesTheConnectionUsableOrAnnouncesThatItCloses() throws IOException {
        ServletServer server = serve((request, response) -> respond(response, 200, "ran"));
        try (Socket socket = new Socket("127.0.0.1", server.port())) {
            socket.setSoTimeout(20_000);
            BufferedReader responses =
                    new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.ISO_8859_1));
            write(socket, "POST /pay HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n");
            List<String> refused = head(responses);
            assertThat(refused.get(0)).startsWith("HTTP/1.1 400");
            if (refused.contains("connection: close")) {
                return;
            }
            responses.skip(contentLength(refused));
            write(socket, "{}GET /pay HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            assertThat(head(responses))
                    .as("the response to the next request")
                    .first()
                    .asString()
                    .startsWith("HTTP/1.1 200");
        }
    }

    private static void write(Socket socket, String text) throws IOException {
        socket.getOutputStream().write(text.getBytes(StandardCharsets.ISO_8859_1));
    }

    /** The lines up to the first empty one, in lower case but for the first. */
    private static List<String> head(BufferedReader responses) throws IOException {
        List<String> lines = new ArrayList<>();
        for (String line = responses.readLine(); line != null && !line.isEmpty(); line = responses.readLine()) {
            lines.add(lines.isEmpty() ? line : line.toLowerCase(Locale.ROOT));
        }
        return lines;
    }

    private static int contentLength(List<String> head) {
        return head.stream()
                .filter(line -> line.startsWith("content-length: "))
                .mapToInt(line -> Integer.parseInt(line.substring("content-length: ".length())))
                .sum();
    }

    @Test
    void aMissingKeyPassesThroughOnRequest() {
        ServletServer server =
                serve((request, response) -> respond(response, 200, "ok"), IdempotenceFilterBuilder::idOptional);
        assertThat(post(server.uri("/payments"), null, "{}").statusCode()).isEqualTo(200);
        assertThat(runs).hasValue(1);
    }

    static List<HeaderVector> vectors() {
        return HeaderVector.all();
    }

    @Test
    void everyHeaderVectorIsReadOverTheWire() {
        ServletServer server = serve((request, response) -> respond(response, 200, "ok"));
        for (HeaderVector vector : vectors()) {
            StringBuilder head = new StringBuilder(
                    "POST /payments HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n");
            vector.lines()
                    .forEach(line ->
                            head.append("Idempotency-Key: ").append(line).append("\r\n"));
            int before = runs.get();
            String response = Http.raw(server.port(), head + "\r\n");
            if (vector.accepted()) {
                assertThat(response).as("%s", vector).startsWith("HTTP/1.1 200");
            } else {
                assertThat(response).as("%s", vector).startsWith("HTTP/1.1 400");
                assertThat(runs).as("%s", vector).hasValue(before);
            }
        }
    }

    @Test
    void anInvalidKeyIsNeverIgnored() {
        ServletServer server =
                serve((request, response) -> respond(response, 200, "ok"), IdempotenceFilterBuilder::idOptional);
        HttpResponse<byte[]> response = post(server.uri("/payments"), "not a key", "{}");
        assertThat(response.statusCode()).isEqualTo(400);
        assertThat(refusal(response)).isEqualTo("key-invalid");
        assertThat(text(response)).doesNotContain("not a key");
        HttpResponse<byte[]> twice = send(request("POST", server.uri("/payments"), id, "{}", "Idempotency-Key", id));
        assertThat(refusal(twice)).isEqualTo("key-invalid");
        assertThat(runs).hasValue(0);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void anInvalidKeyInACallOfTheHandlerIsItsOwnFailure(boolean isProtected) {
        ServletServer server = serve(
                (request, response) -> IdempotencyKeyHeader.standard().parse(List.of("not a key")),
                IdempotenceFilterBuilder::idOptional);
        HttpResponse<byte[]> response = post(server.uri("/payments"), isProtected ? id : null, "{}");
        assertThat(response.statusCode()).isEqualTo(500);
        assertThat(refusal(response)).isNull();
        assertThat(runs).hasValue(1);
    }

    @Test
    void quotedAndBareAreTheSameId() {
        ServletServer server = serve((request, response) -> respond(response, 200, "ok"));
        call(server);
        assertThat(replayed(post(server.uri("/payments"), '"' + id + '"', "{\"amount\":5}")))
                .isTrue();
        assertThat(runs).hasValue(1);
    }

    @Test
    void bodyReaderAndFormParametersReachTheHandler() {
        ServletServer server = serve((request, response) -> {
            String body;
            if (request.getRequestURI().equals("/reader")) {
                body = request.getReader().readLine();
            } else if (request.getRequestURI().equals("/form")) {
                body = Arrays.toString(request.getParameterValues("a"))
                        + request.getParameter("b")
                        + request.getParameter("none");
            } else {
                body = text(request);
            }
            respond(response, 200, body);
        });
        assertThat(text(post(server.uri("/stream"), "k1", "grüße"))).isEqualTo("grüße");
        assertThat(text(post(server.uri("/reader"), "k2", "grüße", "Content-Type", "text/plain;charset=utf-8")))
                .isEqualTo("grüße");
        assertThat(text(post(
                        server.uri("/form?a=1"),
                        "k3",
                        "a=2&a=3+4&b=%C3%BC",
                        "Content-Type",
                        "application/x-www-form-urlencoded;charset=utf-8")))
                .isEqualTo("[1, 2, 3 4]ünull");
    }

    @Test
    void aFormThatAFilterInFrontHasParsedIsStillComparedAndServed() {
        ServletServer server =
                serveBehindAParserOfForms((request, response) -> respond(response, 200, request.getParameter("a")));
        String form = "application/x-www-form-urlencoded";
        assertThat(text(post(server.uri("/p"), id, "a=1", "Content-Type", form)))
                .isEqualTo("1");
        assertThat(replayed(post(server.uri("/p"), id, "a=1", "Content-Type", form)))
                .isTrue();
        assertThat(refusal(post(server.uri("/p"), id, "a=2", "Content-Type", form)))
                .isEqualTo("key-reused");
    }
}
