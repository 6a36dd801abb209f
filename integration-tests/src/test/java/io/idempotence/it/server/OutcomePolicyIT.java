package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.container.Http.request;
import static io.idempotence.it.container.Http.text;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.FailureRule;
import io.idempotence.it.container.Container;
import io.idempotence.it.container.Http;
import io.idempotence.it.container.ServletServer;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.ReadListener;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletResponse;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.Stream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The verdict about an ID after a failure: the policy's, and the handler's. */
class OutcomePolicyIT extends FilterTestBase {
    @ParameterizedTest
    @ValueSource(ints = {400, 403, 404, 409, 422})
    @DisplayName("T10, T5: a business failure keeps the ID")
    void aBusinessFailureKeepsTheId(int status) {
        ServletServer server = serve((request, response) -> respond(response, status, "no " + runs.get()));
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(status);
        assertSameResponse(first, call(server));
        assertThat(runs).hasValue(1);
    }

    @ParameterizedTest
    @ValueSource(strings = {"in-progress", "storage-unavailable", "overloaded"})
    @DisplayName("T12, T8: the retryable refusal of another service, which a handler relays, is not a business failure")
    void aRelayedRefusalReleasesTheId(String code) {
        ServletServer server = serve((request, response) -> {
            if (runs.get() == 1) {
                response.setHeader("Idempotency-Refusal", code);
                respond(response, 409, "still running there");
            } else {
                respond(response, 200, "paid there");
            }
        });
        assertThat(call(server).statusCode()).isEqualTo(409);
        HttpResponse<byte[]> second = call(server);
        assertThat(text(second)).isEqualTo("paid there");
        assertThat(replayed(second)).isFalse();
        assertThat(replayed(call(server))).isTrue();
        assertThat(runs).hasValue(2);
    }

    @Test
    void aRelayedRefusalIsKeptWhereSystemFailuresAre() {
        policy = IdempotencePolicy.builder()
                .failureRule(FailureRule.STORE_EVERYTHING)
                .build();
        ServletServer server = serve((request, response) -> {
            response.addHeader("Idempotency-Refusal", "in-progress");
            response.sendError(409);
        });
        call(server);
        assertThat(replayed(call(server))).isTrue();
        assertThat(runs).hasValue(1);
    }

    @ParameterizedTest
    @ValueSource(strings = {"outcome-unknown", "unheard-of", "in-progress, then reset", "in-progress, then removed"})
    void anyOtherRefusalIsABusinessFailure(String refusal) {
        ServletServer server = serve((request, response) -> {
            String[] steps = refusal.split(", then ");
            response.setHeader("Idempotency-Refusal", steps[0]);
            if (steps[steps.length - 1].equals("reset")) {
                response.reset();
            } else if (steps.length > 1) {
                response.setHeader("Idempotency-Refusal", null);
            }
            respond(response, 409, "no");
        });
        call(server);
        assertThat(replayed(call(server))).isTrue();
    }

    /** Tomcat 10.1 and Undertow omit what they cannot decode. */
    @ParameterizedTest
    @CsvSource({"%zz, false", "%zz, true", "%ff, false", "%ff, true"})
    @DisplayName("T10, T5: a query that the container refuses with a 400 is a business failure")
    void aMalformedQueryIsABusinessFailure(String value, boolean wraps) {
        assumeThat(container == Container.JETTY || ServletServer.isServlet61()).isTrue();
        policy = IdempotencePolicy.builder()
                .failureRule(FailureRule.RELEASE_IF_NOTHING_TOOK_EFFECT)
                .build();
        ServletServer server = serve((request, response) -> {
            try {
                respond(response, 200, request.getParameter("x"));
            } catch (RuntimeException e) {
                if (wraps) {
                    throw new ServletException(e);
                }
                throw e;
            }
        });
        String sent = "POST /p?x=" + value
                + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\nIdempotency-Key: " + id
                + "\r\n\r\n";
        assertThat(Http.raw(server.port(), sent)).startsWith("HTTP/1.1 400").doesNotContain("Idempotent-Replayed");
        assertThat(Http.raw(server.port(), sent)).startsWith("HTTP/1.1 400").contains("Idempotent-Replayed: true");
        assertThat(runs).hasValue(1);
    }

    @ParameterizedTest
    @ValueSource(ints = {408, 425, 429, 500, 502, 503, 504})
    @DisplayName("T12, T8: a system failure releases the ID")
    void aSystemFailureReleasesTheId(int status) {
        ServletServer server = serve((request, response) -> {
            int run = runs.get();
            respond(response, run == 1 ? status : 200, "run " + run);
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
    @DisplayName("T12, T8: an uncaught exception releases the ID")
    void anUncaughtExceptionReleasesTheId() {
        ServletServer server = serve((request, response) -> {
            if (runs.get() == 1) {
                throw new ServletException("database down");
            }
            respond(response, 200, "ok");
        });
        assertThat(call(server).statusCode()).isEqualTo(500);
        assertThat(call(server).statusCode()).isEqualTo(200);
        assertThat(replayed(call(server))).isTrue();
        assertThat(runs).hasValue(2);
    }

    @Test
    @DisplayName("P7: an exception whose causes form a cycle ends its execution like any other")
    void anExceptionThatIsItsOwnCauseEndsItsExecution() {
        IllegalStateException thrown = new IllegalStateException("outer");
        thrown.initCause(new IllegalStateException("inner", thrown));
        ServletServer server = serveBehind(
                (request, response, chain) -> {
                    try {
                        chain.doFilter(request, response);
                    } catch (IllegalStateException e) {
                        // Jetty itself never ends such a request.
                        ((HttpServletResponse) response).sendError(500);
                    }
                },
                (request, response) -> {
                    if (runs.get() == 1) {
                        throw thrown;
                    }
                    respond(response, 200, "ok");
                });
        assertThat(call(server).statusCode()).isEqualTo(500);
        assertThat(call(server).statusCode()).isEqualTo(200);
        assertThat(runs).hasValue(2);
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
    @DisplayName("T7: the handler gets the number of its attempt, which the caller's header may state wrongly")
    void theHandlerLearnsTheNumberOfItsAttempt() {
        ServletServer server = serve((request, response) -> respond(
                response,
                200,
                "attempt " + IdempotenceFilter.execution(request).orElseThrow().attempt()));
        Map<List<String>, String> attempts = Map.of(
                List.of(), "1",
                List.of("3"), "3",
                List.of("999999999"), "999999999",
                List.of("1000000000"), "1",
                List.of("0"), "1",
                List.of("-2"), "1",
                List.of("2, 3"), "1",
                List.of("2", "3"), "1",
                List.of("two"), "1");
        attempts.forEach((lines, attempt) -> {
            String[] headers = lines.stream()
                    .flatMap(line -> Stream.of("Idempotency-Attempt", line))
                    .toArray(String[]::new);
            String key = UUID.randomUUID().toString();
            assertThat(text(post(server.uri("/payments"), key, "{}", headers)))
                    .as("%s", lines)
                    .isEqualTo("attempt " + attempt);
        });
    }

    @Test
    @DisplayName("T10, T12, T13, T18: the handler decides at run time")
    void theHandlerDecidesAtRunTime() {
        ServletServer server = serve((request, response) -> {
            var execution = IdempotenceFilter.execution(request).orElseThrow();
            switch (request.getRequestURI()) {
                case "/keep" -> execution.keep();
                case "/release" -> execution.release();
                default -> execution.markUnknown();
            }
            respond(
                    response,
                    request.getRequestURI().equals("/keep") ? 500 : 200,
                    execution.id() + " " + execution.fence());
        });
        HttpResponse<byte[]> kept = post(server.uri("/keep"), "k1", "");
        assertThat(text(kept)).isEqualTo("k1 1");
        assertSameResponse(kept, post(server.uri("/keep"), "k1", ""));
        assertThat(text(post(server.uri("/release"), "k2", ""))).isEqualTo("k2 1");
        assertThat(text(post(server.uri("/release"), "k2", ""))).isEqualTo("k2 2");
        assertThat(post(server.uri("/unknown"), "k3", "").statusCode()).isEqualTo(200);
        HttpResponse<byte[]> unknown = post(server.uri("/unknown"), "k3", "");
        assertThat(unknown.statusCode()).isEqualTo(409);
        assertThat(refusal(unknown)).isEqualTo("outcome-unknown");
        assertThat(text(unknown)).contains("\"safeNewId\":false");
    }

    @Test
    @DisplayName("T12, T8: a handler that fails in its use of streams is released")
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
            respond(response, 200, "ok");
        });
        assertThat(call(server).statusCode()).isEqualTo(500);
        assertThat(text(call(server))).isEqualTo("ok");
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 99})
    @DisplayName("a handler that sets a status that HTTP does not define is done, not run again")
    void aHandlerThatSetsAStatusUnknownToHttpIsNotRunAgain(int status) {
        assumeThat(container)
                .as("Jetty throws at such a status, which makes it a handler that fails")
                .isNotEqualTo(Container.JETTY);
        ServletServer server = serve((request, response) -> {
            response.setStatus(status);
            response.getOutputStream().print("paid");
        });
        callThatMayBeCut(server);
        awaitEnd(server);
        assertThat(refusal(call(server))).isEqualTo("result-unavailable");
        assertThat(runs).hasValue(1);
    }

    @Test
    @DisplayName("a response that the handler has ended is given and kept, whatever fails behind it")
    void aResponseThatTheHandlerHasEndedIsKeptWhateverFailsBehindIt() {
        ServletServer server = serve((request, response) -> {
            respond(response, 201, "paid");
            response.getOutputStream().close();
            throw new IllegalStateException("a filter behind the idempotence filter cannot log");
        });
        assertPaidOnce(server);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    @DisplayName("a response of the length that the handler has declared is given and kept, whatever fails behind it")
    void aResponseOfItsDeclaredLengthIsKeptWhateverFailsBehindIt(boolean sendsError) {
        ServletServer server = serve((request, response) -> {
            response.setContentLength(4);
            respond(response, 201, "paid");
            if (sendsError) {
                response.sendError(500);
            }
            throw new IllegalStateException("a filter behind the idempotence filter cannot log");
        });
        assertPaidOnce(server);
    }

    private void assertPaidOnce(ServletServer server) {
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(201);
        assertThat(text(first)).isEqualTo("paid");
        assertSameResponse(first, call(server));
        assertThat(runs).hasValue(1);
    }

    @Test
    @DisplayName("a redirect is given and kept, whatever fails behind it")
    void aRedirectIsKeptWhateverFailsBehindIt() {
        ServletServer server = serve((request, response) -> {
            response.sendRedirect("/payments/1");
            throw new IllegalStateException("a filter behind the idempotence filter cannot log");
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(302);
        assertSameResponse(first, call(server));
        assertThat(runs).hasValue(1);
    }

    @Test
    @DisplayName("T13: a handler that fails after it committed a success is unknown, not run again")
    void aHandlerThatFailsAfterItCommittedASuccessIsNotRunAgain() {
        ServletServer server = serve((request, response) -> {
            respond(response, 201, "paid, and");
            response.flushBuffer();
            throw new IllegalStateException("broken in the middle of the response");
        });
        call(server);
        assertThat(refusal(call(server))).isEqualTo("outcome-unknown");
        assertThat(runs).hasValue(1);
    }

    @Test
    @DisplayName("T13: a handler that fails in the middle of a large response is unknown, not run again")
    void aHandlerThatFailsInTheMiddleOfALargeResponseIsNotRunAgain() {
        ServletServer server = serve(
                (request, response) -> {
                    respond(response, 201, "paid".repeat(100_000));
                    throw new IllegalStateException("broken in the middle of the response");
                },
                filter -> filter.maxResponseBody(10));
        callThatMayBeCut(server);
        assertThat(refusal(call(server))).isEqualTo("outcome-unknown");
        assertThat(runs).hasValue(1);
    }

    @Test
    @DisplayName("T12, T8: a handler that fails after it committed a system failure is released")
    void aHandlerThatFailsAfterItCommittedASystemFailureIsReleased() {
        ServletServer server = serve((request, response) -> {
            respond(response, runs.get() == 1 ? 503 : 200, "run " + runs.get());
            response.flushBuffer();
            if (runs.get() == 1) {
                throw new IllegalStateException("broken");
            }
        });
        assertThat(call(server).statusCode()).isGreaterThanOrEqualTo(500);
        assertThat(text(call(server))).isEqualTo("run 2");
    }
}
