package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.it.container.ServletServer;
import jakarta.servlet.Filter;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.CharArrayWriter;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Filters in front that override only the writer of the response: replays and refusals pass through them like first responses. */
class TextFiltersIT extends FilterTestBase {
    /** Holds the text of a response, and gives it to the container in upper case. */
    private static final Filter UPPER_CASE = (request, response, chain) -> {
        CharArrayWriter written = new CharArrayWriter();
        chain.doFilter(request, new WithWriter(response, new PrintWriter(written)));
        response.getWriter().write(written.toString().toUpperCase(Locale.ROOT));
    };

    /** Has the text of a response encoded by a writer with a buffer, which only the handler flushes. */
    private static final Filter BUFFERED = (request, response, chain) -> chain.doFilter(
            request,
            new WithWriter(
                    response,
                    new PrintWriter(new OutputStreamWriter(response.getOutputStream(), StandardCharsets.UTF_8))));

    /** Ends a body only when the handler closes the writer. */
    private static final Filter ENDING = (request, response, chain) ->
            chain.doFilter(request, new WithWriter(response, new PrintWriter(StreamFiltersIT.ending(response))));

    /** Puts {@link #UPPER_CASE} behind a filter whose wrapper overrides both methods, as those of Spring Session and Spring Security do. */
    private static final Filter BEHIND_ANOTHER_WRAPPER = (request, response, chain) ->
            UPPER_CASE.doFilter(request, new WithBoth((HttpServletResponse) response), chain);

    private static final class WithBoth extends HttpServletResponseWrapper {
        WithBoth(HttpServletResponse response) {
            super(response);
        }

        @Override
        public ServletOutputStream getOutputStream() throws IOException {
            return super.getOutputStream();
        }

        @Override
        public PrintWriter getWriter() throws IOException {
            return super.getWriter();
        }
    }

    private static final class WithWriter extends HttpServletResponseWrapper {
        private final PrintWriter writer;

        WithWriter(ServletResponse response, PrintWriter writer) {
            super((HttpServletResponse) response);
            this.writer = writer;
        }

        @Override
        public PrintWriter getWriter() {
            return writer;
        }
    }

    private static void print(HttpServletResponse response, String type) throws IOException {
        response.setContentType(type);
        response.getWriter().print("paid \u00fc");
    }

    @ParameterizedTest
    @ValueSource(strings = {"text/plain;charset=utf-8", "text/html", "application/json"})
    @DisplayName("P4: a replay of text passes a filter in front that overrides only the writer")
    void replayPassesAFilterThatOverridesOnlyTheWriter(String type) {
        ServletServer server = serveBehind(UPPER_CASE, (request, response) -> print(response, type));
        HttpResponse<byte[]> first = call(server);
        assertThat(new String(first.body(), StandardCharsets.ISO_8859_1)).startsWith("PAID ");
        assertSameResponse(first, call(server));
        assertThat(runs).hasValue(1);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void refusalPassesAFilterThatOverridesOnlyTheWriter(boolean behindAnotherWrapper) {
        Filter filter = behindAnotherWrapper ? BEHIND_ANOTHER_WRAPPER : UPPER_CASE;
        ServletServer server = serveBehind(filter, (request, response) -> print(response, "text/plain"));
        call(server);
        HttpResponse<byte[]> other = post(server.uri("/payments"), id, "{\"amount\":6}");
        assertThat(other.statusCode()).isEqualTo(422);
        assertThat(refusal(other)).isEqualTo("key-reused");
        assertThat(text(other)).contains("\"STATUS\":422");
        HttpResponse<byte[]> missing = post(server.uri("/payments"), null, "{}");
        assertThat(missing.statusCode()).isEqualTo(400);
        assertThat(refusal(missing)).isEqualTo("key-missing");
    }

    @Test
    @DisplayName("P4: a writer in front that needs a flush gets one in a replay if the handler gave it one")
    void replayFlushesAsTheHandlerDid() {
        ServletServer server = serveBehind(BUFFERED, (request, response) -> {
            print(response, "text/plain;charset=utf-8");
            response.getWriter().flush();
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(text(first)).isEqualTo("paid \u00fc");
        assertSameResponse(first, call(server));
    }

    @Test
    @DisplayName(
            "P4: a writer in front that ends a body when it is closed is closed in a replay if the handler closed it")
    void replayClosesTheWriterAsTheHandlerDid() {
        for (String body : List.of("paid", "")) {
            assertReplayedBehind(ENDING, body + ".", (request, response) -> {
                response.setContentType("text/plain;charset=utf-8");
                response.getWriter().write(body);
                response.getWriter().close();
            });
        }
    }

    @Test
    void textThatIsRedirectedWithPassesTheFilterToo() {
        if (!ServletServer.isServlet61()) {
            return;
        }
        ServletServer server = serveBehind(UPPER_CASE, (request, response) -> {
            print(response, "text/plain;charset=utf-8");
            response.sendRedirect("/elsewhere", 303, false);
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(303);
        assertSameResponse(first, call(server));
    }
}
