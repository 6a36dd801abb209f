package io.idempotence.it.server;

import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.container.Http.request;
import static io.idempotence.it.container.Http.text;
import static io.idempotence.it.wire.Latches.awaitLatch;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.idempotence.it.container.Container;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.ServletServer.Handler;
import io.idempotence.server.Idempotence;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Responses that the container accepts in part, or not at all, because of a bug of a filter in front. */
class UndeliveredResponsesIT extends FilterTestBase {
    /** A bug of a filter in front, which occurs once, when the response is about to leave. */
    @FunctionalInterface
    private interface Bug {
        void on(HttpServletResponse response, ServletOutputStream stream) throws IOException;
    }

    private enum Way {
        IN_ITS_DISPATCH,
        LATER,
        LATER_AND_MAPPED_BY_HAND,
        LATER_AND_MAPPED_BY_HAND_WITHOUT_A_TIMEOUT
    }

    private ServletServer serveBehind(Bug bug, Way way) {
        AtomicBoolean breaks = new AtomicBoolean(true);
        Idempotence idempotence = idempotence();
        CountDownLatch dispatched = new CountDownLatch(1);
        Handler handler = (request, response) -> {
            response.setHeader("X-Handler", "seen");
            if (way != Way.IN_ITS_DISPATCH) {
                AsyncContext async = request.startAsync(request, response);
                async.setTimeout(way == Way.LATER_AND_MAPPED_BY_HAND ? 3000 : 0);
                executor.execute(() -> {
                    awaitLatch(dispatched);
                    respond(async, 201, "paid, and more");
                    async.complete();
                });
            } else {
                respond(response, 201, "paid, and more");
            }
        };
        return start(handler, context -> {
            inFront(context, (request, response, chain) -> {
                ((HttpServletResponse) response).setHeader("X-Front", "seen");
                chain.doFilter(request, new HttpServletResponseWrapper((HttpServletResponse) response) {
                    @Override
                    public ServletOutputStream getOutputStream() throws IOException {
                        ServletOutputStream stream = super.getOutputStream();
                        if (breaks.getAndSet(false)) {
                            bug.on(this, stream);
                            throw new IllegalStateException("a bug of a filter in front");
                        }
                        return stream;
                    }
                });
                dispatched.countDown();
            });
            if (way == Way.LATER_AND_MAPPED_BY_HAND || way == Way.LATER_AND_MAPPED_BY_HAND_WITHOUT_A_TIMEOUT) {
                AsyncHandlersIT.mapByHand(context, idempotence, "/payments/*");
            } else {
                IdempotenceFilter.install(context, idempotence);
            }
        });
    }

    private void assertReplaysWhole(ServletServer server) {
        HttpResponse<byte[]> second = call(server);
        assertThat(second.statusCode()).isEqualTo(201);
        assertThat(text(second)).isEqualTo("paid, and more");
        assertThat(replayed(second)).isTrue();
        assertThat(runs).hasValue(1);
    }

    @ParameterizedTest
    @EnumSource(Way.class)
    @DisplayName("P4: a response that the container does not take is no empty success, and is recorded all the same")
    void aResponseThatIsNotTakenIsNoEmptySuccess(Way way) {
        ServletServer server = serveBehind((response, stream) -> response.resetBuffer(), way);
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(500);
        assertThat(first.headers().allValues("X-Front")).containsExactly("seen");
        assertThat(first.headers().allValues("X-Handler")).isEmpty();
        assertReplaysWhole(server);
    }

    @ParameterizedTest
    @EnumSource(value = Way.class, mode = EnumSource.Mode.EXCLUDE, names = "LATER_AND_MAPPED_BY_HAND_WITHOUT_A_TIMEOUT")
    @DisplayName("P4: a response of which a part has left is cut, and does not look whole")
    void aResponseThatIsTakenInPartDoesNotLookWhole(Way way) {
        assumeThat(way == Way.LATER_AND_MAPPED_BY_HAND && container == Container.JETTY)
                .as("Jetty ends a response properly at its timeout, too")
                .isFalse();
        ServletServer server = serveBehind(UndeliveredResponsesIT::takeFourBytes, way);
        if (container == Container.UNDERTOW && way != Way.LATER_AND_MAPPED_BY_HAND) {
            // It ends a response properly if a dispatch throws, with the filter and without it.
            assertThat(text(call(server))).isEqualTo("paid");
        } else {
            assertThatThrownBy(() -> call(server)).isInstanceOf(UncheckedIOException.class);
        }
        assertReplaysWhole(server);
    }

    private static void takeFourBytes(HttpServletResponse response, ServletOutputStream stream) throws IOException {
        stream.write("paid".getBytes(StandardCharsets.US_ASCII));
        response.flushBuffer();
    }

    @Test
    @DisplayName("P4: a response that nothing can cut ends all the same: its caller does not wait without end")
    void aResponseThatIsTakenInPartAndThatNothingCanCutEnds() {
        ServletServer server =
                serveBehind(UndeliveredResponsesIT::takeFourBytes, Way.LATER_AND_MAPPED_BY_HAND_WITHOUT_A_TIMEOUT);
        assertThat(text(call(server))).isEqualTo("paid");
        assertReplaysWhole(server);
    }
}
