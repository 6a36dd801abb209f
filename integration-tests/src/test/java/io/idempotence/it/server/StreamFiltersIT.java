package io.idempotence.it.server;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.it.container.ServletServer;
import jakarta.servlet.Filter;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** Filters in front that override only the stream of the response: replays and refusals pass through them like first responses. */
class StreamFiltersIT extends FilterTestBase {
    /** Holds the bytes of a response, and gives them to the container encoded, which makes them longer. */
    private static final Filter ENCODING = (request, response, chain) -> {
        ByteArrayOutputStream written = new ByteArrayOutputStream();
        chain.doFilter(request, new WithStream(response, written));
        response.getOutputStream().write(Base64.getEncoder().encode(written.toByteArray()));
    };

    /** Has a buffer in front of the container's stream, which only the handler flushes. */
    private static final Filter BUFFERED = (request, response, chain) ->
            chain.doFilter(request, new WithStream(response, new BufferedOutputStream(response.getOutputStream())));

    /** Ends a body only when the handler closes its stream, as compression does. */
    private static final Filter ENDING =
            (request, response, chain) -> chain.doFilter(request, new WithStream(response, ending(response)));

    static OutputStream ending(ServletResponse response) throws IOException {
        return new FilterOutputStream(response.getOutputStream()) {
            @Override
            public void close() throws IOException {
                write('.');
                super.close();
            }
        };
    }

    private static final class WithStream extends HttpServletResponseWrapper {
        private final OutputStream out;

        WithStream(ServletResponse response, OutputStream out) {
            super((HttpServletResponse) response);
            this.out = out;
        }

        @Override
        public ServletOutputStream getOutputStream() {
            return new ServletOutputStream() {
                @Override
                public boolean isReady() {
                    return true;
                }

                @Override
                public void setWriteListener(WriteListener listener) {
                    throw new IllegalStateException("asynchronous processing was not started");
                }

                @Override
                public void write(int b) throws IOException {
                    out.write(b);
                }

                @Override
                public void flush() throws IOException {
                    out.flush();
                }

                @Override
                public void close() throws IOException {
                    out.close();
                }
            };
        }
    }

    @Test
    @DisplayName("P4: a replay passes a filter in front that changes the length of bodies but not the declared one")
    void replayPassesAFilterThatChangesTheLength() {
        ServletServer server = serveBehind(ENCODING, (request, response) -> respond(response, 201, "paid"));
        HttpResponse<byte[]> first = call(server);
        assertThat(text(first)).isEqualTo("cGFpZA==");
        assertSameResponse(first, call(server));
        assertThat(runs).hasValue(1);
    }

    @Test
    void refusalPassesAFilterThatChangesTheLength() {
        ServletServer server = serveBehind(ENCODING, (request, response) -> respond(response, 201, "paid"));
        call(server);
        HttpResponse<byte[]> other = post(server.uri("/payments"), id, "{\"amount\":6}");
        assertThat(refusal(other)).isEqualTo("key-reused");
        assertThat(new String(Base64.getDecoder().decode(other.body()), StandardCharsets.UTF_8))
                .endsWith("}");
    }

    @Test
    @DisplayName("P4: a stream in front that needs a flush gets one in a replay if the handler gave it one")
    void replayFlushesAsTheHandlerDid() {
        ServletServer server = serveBehind(BUFFERED, (request, response) -> {
            respond(response, 201, "paid");
            response.getOutputStream().flush();
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(text(first)).isEqualTo("paid");
        assertSameResponse(first, call(server));
        assertThat(runs).hasValue(1);
    }

    @Test
    @DisplayName("P4: behind a filter that overrides the stream, a replay has a length if the handler declared one")
    void replayDeclaresItsLengthAsTheHandlerDid() {
        for (boolean declared : new boolean[] {true, false}) {
            ServletServer server = serveBehind(BUFFERED, (request, response) -> {
                if (declared) {
                    response.setContentLength(4);
                }
                respond(response, 201, "paid");
                response.getOutputStream().flush();
            });
            HttpResponse<byte[]> first = call(server);
            HttpResponse<byte[]> second = call(server);
            assertSameResponse(first, second);
            assertThat(second.headers().allValues("Content-Length"))
                    .isEqualTo(first.headers().allValues("Content-Length"))
                    .hasSize(declared ? 1 : 0);
        }
    }

    @Test
    @DisplayName(
            "P4: a stream in front that ends a body when it is closed is closed in a replay if the handler closed it")
    void replayClosesTheStreamAsTheHandlerDid() {
        assertReplayedBehind(ENDING, "paid.", (request, response) -> {
            respond(response, 201, "paid");
            response.getOutputStream().close();
        });
        assertReplayedBehind(ENDING, ".", (request, response) -> {
            response.setStatus(201);
            response.getOutputStream().close();
        });
    }

    @Test
    @DisplayName("P4: a handler that closes its stream after a redirect with a body gets the same redirect replayed")
    void replayOfAClosedRedirectIsARedirect() {
        ServletServer server = serveBehind(BUFFERED, (request, response) -> {
            respond(response, 200, "moved");
            try {
                response.sendRedirect("/elsewhere", 303, false);
            } catch (NoSuchMethodError servlet60) {
                response.sendRedirect("/elsewhere");
            }
            response.getOutputStream().close();
        });
        HttpResponse<byte[]> first = call(server);
        assertSameResponse(first, call(server));
    }
}
