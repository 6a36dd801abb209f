package io.idempotence.it.server;

import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.text;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.ServletServer.Handler;
import io.idempotence.server.Idempotence;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.FilterRegistration;
import jakarta.servlet.ReadListener;
import jakarta.servlet.ServletInputStream;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.util.EnumSet;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Listeners of non-blocking streams that are set too early or twice, or that fail. */
class StreamListenersIT extends FilterTestBase {
    /** A step of a listener. */
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

    private static void fail() throws IOException {
        throw new IOException("the bank is away");
    }

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

    @Test
    @DisplayName("a listener that looks for more input after it has completed fails nothing")
    void aListenerMayLookForMoreAfterItHasCompleted() {
        ServletServer server = serve((request, response) -> {
            AsyncContext async = request.startAsync();
            ServletInputStream in = request.getInputStream();
            ServletOutputStream out = response.getOutputStream();
            in.setReadListener(new ReadListener() {
                @Override
                public void onDataAvailable() throws IOException {
                    while (in.isReady() && in.read() != '}') {
                        // The end of the document is enough.
                    }
                    response.setStatus(201);
                    out.print("paid");
                    async.complete();
                    in.isReady();
                }

                @Override
                public void onAllDataRead() {}

                @Override
                public void onError(Throwable e) {
                    response.setStatus(500);
                }
            });
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(201);
        assertThat(text(first)).isEqualTo("paid");
        assertSameResponse(first, call(server));
        assertThat(runs).hasValue(1);
    }

    /** It was recorded as done, with the response so far, because its listener completes in the end. Tomcat and Undertow cut it. */
    @ParameterizedTest
    @CsvSource({"true, true", "true, false", "false, true", "false, false"})
    @DisplayName("T13: a handler whose listener fails is not done, and its outcome is unknown")
    void aHandlerWhoseListenerFailsIsNotDone(boolean reads, boolean completes) {
        ServletServer server = serve((request, response) -> {
            AsyncContext async = request.startAsync();
            // Nothing else ends the processing.
            async.setTimeout(0);
            response.setStatus(201);
            ServletOutputStream out = response.getOutputStream();
            Step fails = () -> {
                out.print("a part of the response");
                throw new IOException("the database is gone");
            };
            Runnable onError = completes ? async::complete : StreamListenersIT::nothing;
            if (reads) {
                ServletInputStream in = request.getInputStream();
                in.setReadListener(reading(in, fails, onError));
            } else {
                out.setWriteListener(writing(fails, onError));
            }
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(500);
        assertThat(text(first)).doesNotContain("a part of the response");
        assertThat(refusal(awaitEnd(server))).isEqualTo("outcome-unknown");
        assertThat(runs).hasValue(1);
    }

    /** Jetty does not announce that it has cut it. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    @DisplayName("T13: a handler whose listener fails while bytes leave is not done, either")
    void aHandlerWhoseListenerFailsWhileBytesLeaveIsNotDone(boolean completes) {
        Handler handler = (request, response) -> {
            AsyncContext async = request.startAsync();
            async.setTimeout(0);
            ServletOutputStream out = response.getOutputStream();
            Step fails = () -> {
                out.write(new byte[200_000]);
                throw new IOException("the database is gone");
            };
            out.setWriteListener(writing(fails, completes ? async::complete : StreamListenersIT::nothing));
        };
        ServletServer server = serve(handler, filter -> filter.maxResponseBody(10_000));
        callThatMayBeCut(server);
        assertThat(refusal(awaitEnd(server))).isEqualTo("outcome-unknown");
        assertThat(runs).hasValue(1);
    }

    @Test
    @DisplayName("T13: an error of a listener ends its handler, too")
    void anErrorOfAListenerEndsItsHandler() {
        AtomicReference<Throwable> reported = new AtomicReference<>();
        ServletServer server = serve((request, response) -> {
            request.startAsync().setTimeout(0);
            response.getOutputStream().setWriteListener(new WriteListener() {
                @Override
                public void onWritePossible() {
                    throw new NoClassDefFoundError("Receipt");
                }

                @Override
                public void onError(Throwable e) {
                    reported.set(e);
                }
            });
        });
        assertThat(call(server).statusCode()).isEqualTo(500);
        assertThat(refusal(awaitEnd(server))).isEqualTo("outcome-unknown");
        assertThat(reported.get()).isInstanceOf(NoClassDefFoundError.class);
        assertThat(runs).hasValue(1);
    }

    @Test
    @DisplayName("T12: what a listener responds to its own failure decides about the ID")
    void whatAListenerRespondsToItsFailureDecides() {
        ServletServer server = serve((request, response) -> {
            AsyncContext async = request.startAsync();
            ServletOutputStream out = response.getOutputStream();
            out.setWriteListener(writing(StreamListenersIT::fail, () -> {
                respond(async, 422, "refused");
                async.complete();
            }));
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(422);
        assertThat(text(first)).isEqualTo("refused");
        awaitReplay(server, first);
        assertThat(runs).hasValue(1);
    }

    @Test
    @DisplayName(
            "a listener that dispatches after its failure, to a handler that is asynchronous again, may still succeed")
    void aHandlerMayDispatchAfterAFailureOfItsListener() {
        ServletServer server = serve((request, response) -> {
            if (request.getDispatcherType() == DispatcherType.ASYNC) {
                AsyncContext again = request.startAsync();
                again.start(() -> {
                    respond(again, 201, "paid by the other bank");
                    again.complete();
                });
                return;
            }
            AsyncContext async = request.startAsync();
            response.getOutputStream().setWriteListener(writing(StreamListenersIT::fail, async::dispatch));
        });
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(201);
        assertThat(text(first)).isEqualTo("paid by the other bank");
        assertSameResponse(first, call(server));
    }

    @Test
    @DisplayName(
            "T13: a handler whose listener fails is no success for its caller, even if the filter sees no dispatches")
    void aHandlerWhoseListenerFailsIsNoSuccess() {
        Idempotence idempotence = idempotence();
        Handler handler = (request, response) -> {
            AsyncContext async = request.startAsync();
            async.setTimeout(0);
            response.setStatus(201);
            response.getOutputStream().setWriteListener(writing(StreamListenersIT::fail, async::complete));
        };
        ServletServer server = start(handler, context -> {
            FilterRegistration.Dynamic filter = context.addFilter(
                    "idempotence", IdempotenceFilter.builder(idempotence).build());
            filter.setAsyncSupported(true);
            filter.addMappingForUrlPatterns(EnumSet.of(DispatcherType.REQUEST), false, "/*");
        });
        assertThat(call(server).statusCode()).isEqualTo(500);
        assertThat(refusal(awaitEnd(server))).isEqualTo("outcome-unknown");
    }
}
