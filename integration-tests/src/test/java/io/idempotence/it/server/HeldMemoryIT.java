package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.it.container.ServletServer;
import jakarta.servlet.MultipartConfigElement;
import org.junit.jupiter.api.Test;

/** What requests hold counts as often as it is in memory. */
class HeldMemoryIT extends FilterTestBase {
    private static final String FORM = "application/x-www-form-urlencoded";

    private ServletServer serveWithOneMebibyte(int responseSize) {
        return serve(
                (request, response) -> answer(response, 200, "x".repeat(responseSize)),
                filter -> filter.maxMemory(1 << 20));
    }

    @Test
    void partsThatTheContainerHoldsCount() {
        multipart = new MultipartConfigElement("", -1, -1, 4 << 20);
        ServletServer server = serveWithOneMebibyte(2);
        assertThat(refusal(post(server.uri("/p"), "small", part(100), "Content-Type", multipart())))
                .isNull();
        assertThat(refusal(post(server.uri("/p"), "large", part(1100 << 10), "Content-Type", multipart())))
                .isEqualTo("overloaded");
        assertThat(refusal(post(server.uri("/p"), "next", part(1000 << 10), "Content-Type", multipart())))
                .isNull();
        assertThat(runs).hasValue(2);
    }

    private static String multipart() {
        return "multipart/form-data; boundary=b";
    }

    private static String part(int size) {
        return "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n" + "x".repeat(size)
                + "\r\n--b--\r\n";
    }

    @Test
    void parametersOfAFormCount() {
        ServletServer server = serveWithOneMebibyte(2);
        String form = "a=" + "x".repeat(500 << 10);
        assertThat(refusal(post(server.uri("/p"), "plain", form, "Content-Type", "text/plain")))
                .isNull();
        assertThat(refusal(post(server.uri("/p"), "form", form, "Content-Type", FORM)))
                .isEqualTo("overloaded");
        assertThat(runs).hasValue(1);
    }

    @Test
    void copiesOfAResponseCount() {
        ServletServer server = serveWithOneMebibyte(300 << 10);
        assertThat(post(server.uri("/p"), id, "{}").body()).hasSize(300 << 10);
        assertThat(refusal(post(server.uri("/p"), id, "{}"))).isEqualTo("result-unavailable");
        assertThat(runs).hasValue(1);
    }
}
