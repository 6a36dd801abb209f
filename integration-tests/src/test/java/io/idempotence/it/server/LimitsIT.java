package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.request;
import static io.idempotence.it.container.Http.text;
import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.it.container.Http;
import io.idempotence.it.container.ServletServer;
import io.idempotence.server.IdempotenceEvent;
import java.io.OutputStream;
import java.net.http.HttpResponse;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Requests and answers that are too large to be held: rules 13 and 14. */
class LimitsIT extends FilterTestBase {
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    @DisplayName("Rule 13: an answer over the cap goes out and is not kept")
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

    @Test
    @DisplayName("Rule 13: an answer of up to 1 MiB is kept by default")
    void anAnswerOfUpToOneMebibyteIsKeptByDefault() {
        ServletServer server =
                serve((request, response) -> answer(response, 200, "x".repeat(Integer.parseInt(text(request)))));
        String largest = Integer.toString(1 << 20);
        HttpResponse<byte[]> first = post(server.uri("/p"), "k1", largest);
        assertThat(first.body()).hasSize(1 << 20);
        assertSameAnswer(first, post(server.uri("/p"), "k1", largest));
        String tooLarge = Integer.toString((1 << 20) + 1);
        assertThat(post(server.uri("/p"), "k2", tooLarge).body()).hasSize((1 << 20) + 1);
        assertThat(refusal(post(server.uri("/p"), "k2", tooLarge))).isEqualTo("result-unavailable");
        assertThat(runs).hasValue(2);
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

    @Test
    @DisplayName("Rule 14: a request body over its cap is not run")
    void aRequestBodyOverItsCapIsNotRun() {
        ServletServer server = serve((request, response) -> answer(response, 200, "ok"), f -> f.maxRequestBody(10));
        assertThat(post(server.uri("/p"), "k1", "0123456789").statusCode()).isEqualTo(200);
        HttpResponse<byte[]> tooLarge = post(server.uri("/p"), "k2", "0123456789a");
        assertThat(tooLarge.statusCode()).isEqualTo(413);
        assertThat(text(tooLarge)).contains("up to 10 bytes");
        assertThat(Http.raw(server.port(), chunked("k3", "0123456789a"))).startsWith("HTTP/1.1 413");
        assertThat(runs).hasValue(1);
    }

    private static String chunked(String id, String body) {
        return "POST /p HTTP/1.1\r\nHost: x\r\nConnection: close\r\nIdempotency-Key: " + id
                + "\r\nTransfer-Encoding: chunked\r\n\r\n" + Integer.toHexString(body.length()) + "\r\n" + body
                + "\r\n0\r\n\r\n";
    }

    @Test
    @DisplayName("Rule 14: a request body may have 10 MiB by default")
    void aRequestBodyMayHaveTenMebibytesByDefault() {
        ServletServer server = serve((request, response) -> answer(
                response, 200, Long.toString(request.getInputStream().transferTo(OutputStream.nullOutputStream()))));
        assertThat(text(post(server.uri("/p"), "k1", "x".repeat(10 << 20)))).isEqualTo("10485760");
        // In chunks, because it is read to its end then: a container may cut the connection of one that is not.
        assertThat(Http.raw(server.port(), chunked("k2", "x".repeat((10 << 20) + 1))))
                .startsWith("HTTP/1.1 413");
        assertThat(runs).hasValue(1);
    }
}
