package io.idempotence.spring.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.springframework.test.web.servlet.request.MockMvcRequestBuilders.asyncDispatch;
import static org.springframework.test.web.servlet.request.MockMvcRequestBuilders.post;

import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.mock.web.MockHttpServletResponse;
import org.springframework.test.web.servlet.MockMvc;
import org.springframework.test.web.servlet.MvcResult;
import org.springframework.test.web.servlet.request.MockHttpServletRequestBuilder;

/** A user's tests with {@code @AutoConfigureMockMvc} are protected like the application. */
@SpringBootTest(
        classes = Orders.class,
        properties = {
            "idempotence.server.storage=memory",
            "idempotence.server.filter-order=-98",
            "idempotence.server.require-id=true",
            "spring.application.name=orders"
        })
@WithMockMvc
class ServerInMockMvcTest {
    @Autowired
    private MockMvc mvc;

    private final String id = UUID.randomUUID().toString();

    @Test
    void aRetryGetsTheResponseOfTheFirstAttempt() throws Exception {
        String first = perform("/open/orders").getContentAsString();
        MockHttpServletResponse retry = perform("/open/orders");

        assertThat(retry.getContentAsString()).isEqualTo(first);
        assertThat(retry.getHeader("Idempotent-Replayed")).isEqualTo("true");
    }

    @Test
    void anAsynchronousResponseIsReplayed() throws Exception {
        MvcResult started = mvc.perform(request("/open/later")).andReturn();
        String first =
                mvc.perform(asyncDispatch(started)).andReturn().getResponse().getContentAsString();
        MockHttpServletResponse retry = perform("/open/later");

        assertThat(first).startsWith("later ");
        assertThat(retry.getContentAsString()).isEqualTo(first);
        assertThat(retry.getHeader("Idempotent-Replayed")).isEqualTo("true");
    }

    @Test
    void aRequestWithoutAnIdIsRefusedIfAnIdIsRequired() throws Exception {
        assertThat(mvc.perform(post("/open/orders")).andReturn().getResponse().getStatus())
                .isEqualTo(400);
    }

    @Test
    void aCallerIsAuthenticatedFirst() throws Exception {
        assertThat(perform("/orders").getStatus()).isEqualTo(401);
    }

    private MockHttpServletResponse perform(String path) throws Exception {
        return mvc.perform(request(path)).andReturn().getResponse();
    }

    private MockHttpServletRequestBuilder request(String path) {
        return post(path).header("Idempotency-Key", id);
    }
}
