package io.idempotence.it.server;

import static io.idempotence.it.container.Http.replayed;
import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.it.container.ServletServer;
import io.idempotence.server.FailingMdc;
import jakarta.servlet.DispatcherType;
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
}
