package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.it.container.ServletServer;
import io.idempotence.server.FailingMdc;
import jakarta.servlet.DispatcherType;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** Dispatches that fail before the filters and the handler behind the idempotence filter begin. */
class FailedBeginningsIT extends FilterTestBase {
    @Test
    @DisplayName("P2: a request whose handler cannot begin gives its claim and its memory back")
    void aRequestWhoseHandlerCannotBeginGivesItsClaimBack() {
        ServletServer server =
                serve((request, response) -> respond(response, 201, "paid"), filter -> filter.maxMemory(1 << 20));
        String body = "x".repeat(700 << 10);
        try (FailingMdc mdc = FailingMdc.failing()) {
            assertThat(post(server.uri("/payments"), id, body).statusCode()).isEqualTo(500);
        }
        assertThat(runs).hasValue(0);
        assertThat(post(server.uri("/payments"), id, body).statusCode()).isEqualTo(201);
        assertThat(runs).hasValue(1);
    }

    @Test
    @DisplayName("P6: the outcome of an asynchronous request is unknown if its last dispatch cannot begin")
    void theOutcomeIsUnknownIfTheLastDispatchCannotBegin() {
        ServletServer server = serve((request, response) -> {
            if (request.getDispatcherType() == DispatcherType.ASYNC) {
                respond(response, 201, "paid");
            } else {
                request.startAsync().dispatch();
            }
        });
        try (FailingMdc mdc = FailingMdc.failing("put", call -> call == 2)) {
            assertThat(call(server).statusCode()).isEqualTo(500);
        }
        assertThat(refusal(awaitEnd(server))).isEqualTo("outcome-unknown");
        assertThat(runs).hasValue(1);
    }
}
