package io.idempotence.it.server;

import static io.idempotence.it.container.Http.text;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.ServletServer.Handler;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.ReadListener;
import jakarta.servlet.ServletInputStream;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletRequest;
import java.io.IOException;
import java.net.http.HttpResponse;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Listeners of non-blocking streams that are set too early or twice, or that fail. */
class StreamListenersIT extends FilterTestBase {
    /** What a listener does. */
    @FunctionalInterface
    private interface Step {
        void run() throws IOException;
    }

    private static ReadListener reading(ServletInputStream in, Step atEnd, Runnable onError) {
        return new ReadListener() {
            @Override
            public void onDataAvailable() throws IOException {
                in.readAllBytes();
            }

            @Override
            public void onAllDataRead() throws IOException {
                atEnd.run();
            }

            @Override
            public void onError(Throwable e) {
                onError.run();
            }
        };
    }

    private static WriteListener writing(Step step, Runnable onError) {
        return new WriteListener() {
            @Override
            public void onWritePossible() throws IOException {
                step.run();
            }

            @Override
            public void onError(Throwable e) {
                onError.run();
            }
        };
    }

    private static void nothing() {}

    /** The exception came when the handler had returned, and its ID was released. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    @DisplayName("P2: a handler that can do without non-blocking streams is not run again")
    void aHandlerThatCanDoWithoutNonBlockingStreamsIsNotRunAgain(boolean reads) {
        Handler handler = (request, response) -> {
            ServletInputStream in = request.getInputStream();
            ServletOutputStream out = response.getOutputStream();
            String way = "non-blocking";
            try {
                if (reads) {
                    in.setReadListener(reading(in, () -> out.print("never"), StreamListenersIT::nothing));
                } else {
                    out.setWriteListener(writing(() -> out.print("never"), StreamListenersIT::nothing));
                }
            } catch (IllegalStateException e) {
                way = "blocking";
            }
            respond(response, 201, way + ' ' + text(request));
        };
        ServletServer server = serve(handler);
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(201);
        assertThat(text(first)).isEqualTo("blocking {\"amount\":5}");
        assertSameResponse(first, call(server));
        assertThat(runs).hasValue(1);
    }

    @Test
    @DisplayName("a stream takes one listener, as in a container")
    void aStreamTakesOneListener() {
        ServletServer server = serve((request, response) -> {
            AsyncContext async = request.startAsync();
            ServletInputStream in = request.getInputStream();
            ServletOutputStream out = response.getOutputStream();
            WriteListener writes = writing(
                    () -> {
                        out.print("written once");
                        async.complete();
                    },
                    async::complete);
            ReadListener reads = reading(in, () -> out.setWriteListener(writes), async::complete);
            assertThatThrownBy(() -> in.setReadListener(null)).isInstanceOf(NullPointerException.class);
            assertThatThrownBy(() -> out.setWriteListener(null)).isInstanceOf(NullPointerException.class);
            in.setReadListener(reads);
            assertThatThrownBy(() -> in.setReadListener(reads)).isInstanceOf(IllegalStateException.class);
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(text(first)).isEqualTo("written once");
        assertSameResponse(first, call(server));
    }
}
