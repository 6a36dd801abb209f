package io.idempotence.it.server;

import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.container.Http.request;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.it.container.ServletServer;
import io.idempotence.server.IdempotenceEvent;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Clients that leave, and answers that are too large. */
class LimitsIT extends FilterTestBase {

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
}
