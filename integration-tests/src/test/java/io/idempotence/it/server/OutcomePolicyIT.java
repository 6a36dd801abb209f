package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.container.Http.request;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.it.container.ServletServer;
import io.idempotence.server.FailureRule;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.Verdict;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.ServletException;
import java.net.http.HttpResponse;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a failure does to its ID, and who decides. */
class OutcomePolicyIT extends FilterTestBase {

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
}
