package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.idempotence.it.container.Container;
import io.idempotence.it.container.ServletServer;
import io.idempotence.server.FailingMdc;
import jakarta.servlet.DispatcherType;
import java.io.UncheckedIOException;
import java.net.http.HttpResponse;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** Requests of an application whose MDC throws. */
class BrokenMdcIT extends FilterTestBase {
    @Test
    @DisplayName("P3: a request runs once, in each of its dispatches, and its response is replayed")
    void aRequestRunsOnceInEachOfItsDispatches() {
        ServletServer server = serve((request, response) -> {
            if (request.getDispatcherType() == DispatcherType.ASYNC) {
                respond(response, 201, "paid");
            } else {
                request.startAsync().dispatch();
            }
        });
        try (FailingMdc mdc = FailingMdc.failing()) {
            assertThat(call(server).statusCode()).isEqualTo(201);
            assertThat(replayed(awaitEnd(server))).isTrue();
        }
        assertThat(runs).hasValue(1);
    }

    @Test
    @DisplayName("P2: a request that could not begin for lack of memory runs at the next attempt")
    void aRequestThatCouldNotBeginRunsAtTheNextAttempt() {
        ServletServer server = serve((request, response) -> respond(response, 201, "paid"));
        try (FailingMdc mdc = FailingMdc.withoutMemory(1)) {
            assertThat(statusOf(server)).isNotEqualTo(201);
            assertThat(runs).hasValue(0);
            assertThat(awaitEnd(server).statusCode()).isEqualTo(201);
        }
        assertThat(runs).hasValue(1);
    }

    @Test
    @DisplayName("P2: a filter in front that tries again after a request could not begin does not run it unprotected")
    void aFilterInFrontThatTriesAgainGetsAnotherClaim() {
        assumeThat(container == Container.TOMCAT)
                .as("Tomcat runs the servlet at once, and no other filter sees it")
                .isFalse();
        ServletServer server = serveBehind(
                (request, response, chain) -> {
                    try {
                        chain.doFilter(request, response);
                    } catch (OutOfMemoryError e) {
                        chain.doFilter(request, response);
                    }
                },
                (request, response) -> respond(response, 201, "paid"));
        HttpResponse<byte[]> first;
        try (FailingMdc mdc = FailingMdc.withoutMemory(1)) {
            first = post(server.uri("/payments"), id, "");
        }
        assertThat(first.statusCode()).isEqualTo(201);
        assertSameResponse(first, post(server.uri("/payments"), id, ""));
        assertThat(runs).hasValue(1);
    }

    @Test
    @DisplayName("P6: a request whose second dispatch could not begin for lack of memory has an unknown outcome")
    void aRequestWhoseSecondDispatchCouldNotBeginIsUnknown() {
        ServletServer server = serve((request, response) -> {
            if (request.getDispatcherType() == DispatcherType.ASYNC) {
                respond(response, 201, "paid");
            } else {
                request.startAsync().dispatch();
            }
        });
        try (FailingMdc mdc = FailingMdc.withoutMemory(2)) {
            assertThat(statusOf(server)).isNotEqualTo(201);
            assertThat(refusal(awaitEnd(server))).isEqualTo("outcome-unknown");
        }
        assertThat(runs).hasValue(1);
    }

    /** The status of a response; 0 if the container cuts the connection instead. */
    private int statusOf(ServletServer server) {
        try {
            return call(server).statusCode();
        } catch (UncheckedIOException theContainerCutIt) {
            return 0;
        }
    }
}
