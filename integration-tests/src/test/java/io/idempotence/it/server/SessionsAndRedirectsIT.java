package io.idempotence.it.server;

import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.it.container.ServletServer;
import io.idempotence.server.IdempotenceEvent;
import jakarta.servlet.http.HttpServletResponse;
import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.lang.reflect.Method;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** Session IDs in URLs, and redirects across versions of the Servlet API. */
class SessionsAndRedirectsIT extends FilterTestBase {
    @Test
    void compressedBodyWithASessionIdIsNotReplayedToAnotherCaller() {
        ServletServer server = serve((request, response) -> {
            request.getSession();
            ByteArrayOutputStream packed = new ByteArrayOutputStream();
            try (OutputStream gzip = new GZIPOutputStream(packed)) {
                gzip.write(response.encodeURL("/next").getBytes(StandardCharsets.UTF_8));
            }
            response.setHeader("Content-Encoding", "gzip");
            response.getOutputStream().write(packed.toByteArray());
        });
        assertThat(call(server).statusCode()).isEqualTo(200);
        assertThat(refusal(call(server))).isEqualTo("result-unavailable");
        assertThat(runs).hasValue(1);
    }

    @Test
    void redirectWithAStatusIsGivenWhereTheServletApiHasNoneOfIt() {
        ServletServer server = serve((request, response) -> seeOther(response, "/elsewhere"));
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(303);
        assertThat(first.headers().firstValue("Location"))
                .hasValueSatisfying(to -> assertThat(to).endsWith("/elsewhere"));
        HttpResponse<byte[]> second = call(server);
        assertThat(replayed(second)).isTrue();
        assertSameResponse(first, second);
    }

    @Test
    @DisplayName("P4: a redirect keeps its body, and a body over the cap is not replayed without it")
    void redirectWithABodyOverTheCapIsNotReplayed() {
        ServletServer server = serve(
                (request, response) -> {
                    respond(response, 200, "This page has moved.");
                    seeOther(response, "/elsewhere", false);
                },
                filter -> filter.maxResponseBody(8));
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(303);
        assertThat(text(first)).isEqualTo("This page has moved.");
        assertThat(refusal(call(server))).isEqualTo("result-unavailable");
        assertThat(events).contains(IdempotenceEvent.OVERSIZE);
    }

    @Test
    @DisplayName("P4: a redirect whose body is longer than its Content-Length is not replayed")
    void redirectWithALongerBodyThanDeclaredIsNotReplayed() {
        ServletServer server = serve((request, response) -> {
            response.setContentLength(5);
            respond(response, 200, "This page has moved.");
            seeOther(response, "/elsewhere", false);
        });
        callThatMayBeCut(server);
        assertThat(refusal(awaitEnd(server))).isEqualTo("result-unavailable");
    }

    private static void seeOther(HttpServletResponse response, String location) {
        seeOther(response, location, true);
    }

    /** Calls a method of Servlet 6.1, so that its record is there in a container of Servlet 6.0 as well. */
    private static void seeOther(HttpServletResponse response, String location, boolean clearBuffer) {
        try {
            Method redirect =
                    response.getClass().getDeclaredMethod("sendRedirect", String.class, int.class, boolean.class);
            redirect.setAccessible(true);
            redirect.invoke(response, location, HttpServletResponse.SC_SEE_OTHER, clearBuffer);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }
}
