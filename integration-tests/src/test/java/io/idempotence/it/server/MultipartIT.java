package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.it.container.Container;
import io.idempotence.it.container.Http;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.server.FingerprintIT.ReadableAgain;
import jakarta.servlet.Filter;
import jakarta.servlet.MultipartConfigElement;
import jakarta.servlet.http.HttpServletRequest;
import java.net.http.HttpResponse;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** Tests of what is compared of multipart requests, even if a filter in front keeps the container from parsing them. */
class MultipartIT extends FilterTestBase {
    private ServletServer behind(Filter inFront) {
        return serveBehind(inFront, (request, response) -> respond(response, 200, text(request)));
    }

    private HttpResponse<byte[]> upload(ServletServer server, String content) {
        String body = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f.txt\"\r\n\r\n" + content
                + "\r\n--b--\r\n";
        // Jetty closes a connection without a notice after parts that it could not parse, such as those that a filter
        // in front has read.
        return Http.sendOverNewConnection(Http.request(
                "POST", server.uri("/upload"), id, body, "Content-Type", "multipart/form-data; boundary=b"));
    }

    private void assertCompared(ServletServer server) {
        HttpResponse<byte[]> first = upload(server, "one");
        assertThat(first.statusCode()).isEqualTo(200);
        assertThat(text(first)).contains("one");
        assertThat(refusal(upload(server, "two"))).isEqualTo("key-reused");
        assertThat(replayed(upload(server, "one"))).isTrue();
        assertThat(runs).hasValue(1);
    }

    /** Tomcat then reports that there are no parts, and leaves the body to the servlet. The other upload got the first one's response. */
    @Test
    @DisplayName("P5: a servlet reads the body itself, and a filter in front has asked for a parameter")
    void bodyIsComparedAlthoughAFilterInFrontHasAskedForAParameter() {
        assertCompared(behind((request, response, chain) -> {
            request.getParameter("_method");
            chain.doFilter(request, response);
        }));
    }

    @Test
    @DisplayName("P5: a filter in front has read the body, and passes it on")
    void bodyThatAFilterInFrontServesAgainIsCompared() {
        multipart = new MultipartConfigElement("");
        ServletServer server = behind((request, response, chain) ->
                chain.doFilter(new ReadableAgain((HttpServletRequest) request), response));
        if (container == Container.JETTY && !ServletServer.isServlet61()) {
            // Others, and Jetty since 12.1.6, report that there are no parts.
            assertThat(upload(server, "one").statusCode()).isEqualTo(400);
            assertThat(runs).hasValue(0);
        } else {
            assertCompared(server);
        }
    }

    @Test
    @DisplayName("P5: a filter in front has read the body, which cannot be compared any more")
    void bodyThatAFilterInFrontHasReadIsRefused() {
        multipart = new MultipartConfigElement("");
        ServletServer server = behind((request, response, chain) -> {
            request.getInputStream().readAllBytes();
            chain.doFilter(request, response);
        });
        assertThat(upload(server, "one").statusCode()).isEqualTo(container == Container.JETTY ? 400 : 500);
        assertThat(runs).hasValue(0);
    }

    @Test
    @DisplayName("P5: parts with other headers are another request")
    void partsWithOtherHeadersAreAnotherRequest() {
        multipart = new MultipartConfigElement("");
        ServletServer server = serve((request, response) ->
                respond(response, 200, request.getPart("a").getHeader("X-Checksum")));
        String body = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\nX-Checksum: %s\r\n\r\none\r\n--b--\r\n";
        String[] type = {"Content-Type", "multipart/form-data; boundary=b"};
        assertThat(post(server.uri("/p"), id, body.formatted(1), type).statusCode())
                .isEqualTo(200);
        assertThat(refusal(post(server.uri("/p"), id, body.formatted(2), type))).isEqualTo("key-reused");
        assertThat(replayed(post(server.uri("/p"), id, body.formatted(1), type)))
                .isTrue();
    }

    @Test
    void bodyWithoutPartsIsAcceptedAsFarAsTheContainerCanParseIt() {
        multipart = new MultipartConfigElement("");
        ServletServer server = serve((request, response) -> respond(response, 200, text(request)));
        for (String end : List.of("", "\r\n")) {
            assertThat(post(
                                    server.uri("/" + end.length()),
                                    id + end.length(),
                                    "--b--" + end,
                                    "Content-Type",
                                    "multipart/form-data; boundary=b")
                            .statusCode())
                    .isEqualTo(container == Container.UNDERTOW ? 500 : 200);
        }
        assertThat(runs).hasValue(container == Container.UNDERTOW ? 0 : 2);
    }
}
