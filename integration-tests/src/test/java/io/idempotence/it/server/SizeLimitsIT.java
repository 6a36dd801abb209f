package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.request;
import static io.idempotence.it.container.Http.text;
import static io.idempotence.it.wire.Latches.awaitLatch;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.it.container.Container;
import io.idempotence.it.container.Http;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.ServletServer.Handler;
import io.idempotence.server.IdempotenceEvent;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.DispatcherType;
import java.io.OutputStream;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Requests and responses that are too large to be held. */
class SizeLimitsIT extends FilterTestBase {
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aResponseOverTheCapGoesOutAndIsNotKept(boolean byWriter) {
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
    @DisplayName("a response of up to 1 MiB is kept by default")
    void aResponseOfUpToOneMebibyteIsKeptByDefault() {
        ServletServer server =
                serve((request, response) -> respond(response, 200, "x".repeat(Integer.parseInt(text(request)))));
        String largest = Integer.toString(1 << 20);
        HttpResponse<byte[]> first = post(server.uri("/p"), "k1", largest);
        assertThat(first.body()).hasSize(1 << 20);
        assertSameResponse(first, post(server.uri("/p"), "k1", largest));
        String tooLarge = Integer.toString((1 << 20) + 1);
        assertThat(post(server.uri("/p"), "k2", tooLarge).body()).hasSize((1 << 20) + 1);
        assertThat(refusal(post(server.uri("/p"), "k2", tooLarge))).isEqualTo("result-unavailable");
        assertThat(runs).hasValue(2);
    }

    private static String form(int parameters) {
        return IntStream.range(0, parameters).mapToObj(i -> "a" + i + "=1").collect(Collectors.joining("&"));
    }

    /** A container refuses it, leaves the rest out, or counts names instead. */
    @Test
    void aFormOfTooManyParametersIsParsedAsFarAsTheContainerWould() {
        Handler handler = (request, response) ->
                respond(response, 200, String.valueOf(request.getParameterMap().size()));
        ServletServer without = start(handler, context -> {});
        ServletServer with = serve(handler);
        String type = "application/x-www-form-urlencoded";
        for (int parameters : List.of(1000, 1001)) {
            String key = "k" + parameters;
            HttpResponse<byte[]> expected = post(without.uri("/p"), key, form(parameters), "Content-Type", type);
            HttpResponse<byte[]> seen = post(with.uri("/p"), key, form(parameters), "Content-Type", type);
            assertThat(seen.statusCode()).isEqualTo(expected.statusCode());
            if (seen.statusCode() == 200) {
                assertThat(text(seen)).isEqualTo(text(expected));
            }
        }
    }

    @Test
    @DisplayName("in Undertow, too many parameters fail the handler that asks for one, and no other")
    void tooManyParametersInUndertowFailTheHandlerThatAsks() {
        assumeThat(container).isEqualTo(Container.UNDERTOW);
        ServletServer server = serve((request, response) -> {
            if (request.getRequestURI().equals("/asks")) {
                request.getParameter("a1");
            }
            response.sendError(422);
        });
        String[] type = {"Content-Type", "application/x-www-form-urlencoded"};
        assertThat(post(server.uri("/p"), "k1", form(1001), type).statusCode()).isEqualTo(422);
        assertThat(post(server.uri("/p"), "k1", form(1001), type).statusCode()).isEqualTo(422);
        assertThat(runs).hasValue(1);
        assertThat(post(server.uri("/asks"), "k2", form(1001), type).statusCode())
                .isEqualTo(500);
        assertThat(post(server.uri("/asks"), "k2", form(1001), type).statusCode())
                .isEqualTo(500);
        assertThat(runs).hasValue(3);
    }

    @Test
    void aRequestBodyOverItsCapIsNotRun() {
        ServletServer server = serve((request, response) -> respond(response, 200, "ok"), f -> f.maxRequestBody(10));
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
    @DisplayName("a request body may have 10 MiB by default")
    void aRequestBodyMayHaveTenMebibytesByDefault() {
        assumeThat(container).as("Undertow takes less").isNotEqualTo(Container.UNDERTOW);
        ServletServer server = serve((request, response) -> respond(
                response, 200, Long.toString(request.getInputStream().transferTo(OutputStream.nullOutputStream()))));
        assertThat(text(post(server.uri("/p"), "k1", "x".repeat(10 << 20)))).isEqualTo("10485760");
        // In chunks, because it is read to its end then: a container may cut the connection of one that is not.
        assertThat(Http.raw(server.port(), chunked("k2", "x".repeat((10 << 20) + 1))))
                .startsWith("HTTP/1.1 413");
        assertThat(runs).hasValue(1);
    }

    @Test
    @DisplayName("Undertow itself refuses a request body of more than 2 MiB, and nothing runs")
    void aRequestBodyMayHaveTwoMebibytesInUndertow() {
        assumeThat(container).isEqualTo(Container.UNDERTOW);
        ServletServer server = serve((request, response) -> respond(response, 200, "ok"));
        assertThat(post(server.uri("/p"), "k1", "x".repeat(2 << 20)).statusCode())
                .isEqualTo(200);
        String tooLarge = "POST /p HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k2\r\nContent-Length: " + ((2 << 20) + 1);
        assertThat(Http.raw(server.port(), tooLarge + "\r\n\r\n")).startsWith("HTTP/1.1 400");
        assertThat(runs).hasValue(1);
    }

    private static final int PART = 400 << 10;

    @Test
    void requestsBeyondTheMemoryOfAllAreRefusedBeforeTheyRun() throws Exception {
        CountDownLatch mayEnd = new CountDownLatch(1);
        ServletServer server = serve(
                (request, response) -> {
                    awaitLatch(mayEnd);
                    respond(response, 200, "ok");
                },
                filter -> filter.maxMemory(1 << 20));
        String body = "x".repeat(PART);
        List<CompletableFuture<HttpResponse<byte[]>>> running = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            running.add(Http.sendAsync(Http.request("POST", server.uri("/p"), "running" + i, body)));
        }
        await().until(() -> runs.get() == 2);

        HttpResponse<byte[]> refused = post(server.uri("/p"), "refused", body);
        assertThat(refused.statusCode()).isEqualTo(503);
        assertThat(refusal(refused)).isEqualTo("overloaded");
        assertThat(refused.headers().firstValue("Retry-After")).isPresent();
        assertThat(runs).hasValue(2);
        assertThat(events).containsOnly(IdempotenceEvent.CLAIMED);

        mayEnd.countDown();
        for (CompletableFuture<HttpResponse<byte[]>> each : running) {
            assertThat(each.get(60, TimeUnit.SECONDS).statusCode()).isEqualTo(200);
        }
        await().until(() -> post(server.uri("/p"), "refused", body).statusCode() == 200);
        assertThat(runs).hasValue(3);
    }

    @Test
    void waitingDuplicatesDoNotHoldTheirBodies() throws Exception {
        CountDownLatch mayEnd = new CountDownLatch(1);
        ServletServer server = serve(
                (request, response) -> {
                    awaitLatch(mayEnd);
                    respond(response, 200, "ok");
                },
                filter -> filter.maxMemory(1 << 20).maxWait(Duration.ofMinutes(1)));
        String body = "x".repeat(PART);
        CompletableFuture<HttpResponse<byte[]>> first =
                Http.sendAsync(Http.request("POST", server.uri("/p"), id, body));
        await().until(() -> runs.get() == 1);
        List<CompletableFuture<HttpResponse<byte[]>>> waiting = new ArrayList<>();
        for (int i = 1; i <= 20; i++) {
            waiting.add(waitingDuplicate(Http.request("POST", server.uri("/p"), id, body, "Prefer", "wait=60"), i));
        }
        mayEnd.countDown();
        assertThat(first.get(60, TimeUnit.SECONDS).statusCode()).isEqualTo(200);
        for (CompletableFuture<HttpResponse<byte[]>> each : waiting) {
            assertThat(Http.replayed(each.get(60, TimeUnit.SECONDS))).isTrue();
        }
    }

    /** Sends a request until it waits. It is refused while the duplicate before it still holds its body. */
    private CompletableFuture<HttpResponse<byte[]>> waitingDuplicate(HttpRequest request, int number) {
        AtomicReference<CompletableFuture<HttpResponse<byte[]>>> sent = new AtomicReference<>(Http.sendAsync(request));
        await().until(() -> {
            if (sent.get().isDone()) {
                sent.set(Http.sendAsync(request));
            }
            return events.stream()
                            .filter(event -> event == IdempotenceEvent.IN_PROGRESS)
                            .count()
                    == number;
        });
        return sent.get();
    }

    @Test
    void responseBeyondTheMemoryOfAllGoesOutAndIsNotKept() {
        ServletServer server = serve(
                (request, response) -> respond(response, 200, "x".repeat(900 << 10)),
                filter -> filter.maxMemory(1 << 20));
        assertThat(post(server.uri("/p"), id, "x".repeat(PART)).body()).hasSize(900 << 10);
        assertThat(refusal(post(server.uri("/p"), id, "x".repeat(PART)))).isEqualTo("result-unavailable");
        assertThat(runs).hasValue(1);
    }

    @Test
    void everyEndGivesItsMemoryBack() {
        errorPage = "/error";
        ServletServer server = serve(
                (request, response) -> {
                    if (request.getDispatcherType() == DispatcherType.ERROR) {
                        respond(response, 500, "page");
                        return;
                    }
                    request.getInputStream().readAllBytes();
                    switch (request.getRequestURI()) {
                        case "/fails" -> throw new IllegalStateException("as the test asks");
                        case "/error" -> response.sendError(422);
                        case "/async" -> {
                            AsyncContext async = request.startAsync();
                            executor.execute(() -> {
                                respond(async, 200, "ok");
                                async.complete();
                            });
                        }
                        case "/dispatch" -> {
                            if (request.getDispatcherType() == DispatcherType.REQUEST) {
                                request.startAsync().dispatch();
                            } else {
                                respond(response, 200, "ok");
                            }
                        }
                        // Jetty loses a timeout that passes before it has noted its timer, as one of 1 ms may.
                        case "/never" -> request.startAsync().setTimeout(SHORT_TIMEOUT_MILLIS);
                        default -> respond(response, 200, "x".repeat(PART));
                    }
                },
                filter -> filter.maxMemory(1 << 20));
        for (int round = 0; round < 3; round++) {
            for (String path : List.of("/ok", "/fails", "/error", "/async", "/dispatch", "/never")) {
                String key = round % 2 == 0 ? path.substring(1) : path.substring(1) + round;
                post(server.uri(path), key, "x".repeat(PART));
                post(server.uri(path), key, "other");
            }
        }
        String all = "x".repeat((1 << 20) - 100);
        await().untilAsserted(() ->
                assertThat(post(server.uri("/async"), id, all).statusCode()).isEqualTo(200));
    }
}
