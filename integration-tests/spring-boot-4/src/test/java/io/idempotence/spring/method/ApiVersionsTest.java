package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.Idempotent;
import java.util.UUID;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** Handlers of one path that the API version of a request chooses between, from Spring 7 on. */
class ApiVersionsTest {
    private static TestServer server;

    private final String id = UUID.randomUUID().toString();

    @RestController
    static class Orders {
        @Idempotent
        @PostMapping(path = "/orders", version = "2")
        String order() {
            return "ordered " + UUID.randomUUID();
        }

        @PostMapping(path = "/orders", version = "1")
        String orderAsBefore() {
            return "ordered as before";
        }
    }

    @Import(Orders.class)
    static class Application {}

    @BeforeAll
    static void start() {
        server = TestServer.start(Application.class, "--spring.mvc.apiversion.use.header=X-Version");
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    private TestServer.Response order(String id, String version) {
        return server.post("/orders", id, "X-Version", version);
    }

    @Test
    void theSettingsOfTheVersionOfTheRequestApply() {
        assertThat(order(null, "1").body()).isEqualTo("ordered as before");
        assertThat(order(null, "2").refusal()).isEqualTo("key-missing");
        assertThat(order(id, "2").body()).startsWith("ordered");
        assertThat(order(id, "2").isReplayed()).isTrue();
    }

    /** It got a 500. */
    @ParameterizedTest
    @ValueSource(strings = {"3", "two"})
    void aVersionThatDoesNotExistIsABadRequest(String version) {
        assertThat(order(id, version).status()).isEqualTo(400);
        assertThat(order(null, version).status()).isEqualTo(400);
    }

    @Test
    void aMissingVersionIsABadRequest() {
        assertThat(server.post("/orders", id).status()).isEqualTo(400);
    }
}
