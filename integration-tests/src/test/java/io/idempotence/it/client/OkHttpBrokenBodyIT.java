package io.idempotence.it.client;

import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static io.idempotence.it.wire.Latches.awaitLatch;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.idempotence.IdempotenceId;
import io.idempotence.InboundRequest;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.okhttp.OkHttpOutcomeUnknownException;
import io.idempotence.it.behaviour.Endings;
import io.idempotence.it.wire.Http2Server;
import io.idempotence.it.wire.RawServer;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.InetAddress;
import java.net.ProtocolException;
import java.net.ServerSocket;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import okhttp3.Call;
import okhttp3.OkHttpClient;
import okhttp3.Protocol;
import okhttp3.Request;
import okhttp3.RequestBody;
import okhttp3.Response;
import okio.BufferedSink;
import okio.GzipSink;
import okio.Okio;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Request bodies that fail, stall or are cancelled while OkHttp writes them: what is in doubt, and what certainly was not sent. */
@Timeout(180)
class OkHttpBrokenBodyIT extends OkHttpInterceptorTestBase {
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void callThatWasCancelledBeforeItBeganIsCanceledAndNotSent(boolean enqueued) {
        AtomicInteger writes = new AtomicInteger();
        Call call = installed()
                .newCall(order().post(body(-1, sink -> {
                            writes.incrementAndGet();
                            sink.writeUtf8("x");
                        }))
                        .build());
        call.cancel();
        assertThatThrownBy(() -> endOf(call, enqueued))
                .isExactlyInstanceOf(IOException.class)
                .hasMessage("Canceled");
        assertThat(received()).isEmpty();
        assertThat(writes).hasValue(0);
        assertThat(events).singleElement().satisfies(event -> {
            assertThat(event.result()).isEqualTo(FAILED);
            assertThat(event.requests()).isZero();
        });
    }

    /** The earlier call may have been executed, however this one ends. */
    @Test
    void resumedCallThatWasCancelledBeforeItBeganIsAsUnknownAsBefore() {
        Call call = installed().newCall(order().build());
        call.cancel();
        assertThatThrownBy(() -> IdempotenceScope.resume(IdempotenceId.of("job-1"), Instant.now(), call::execute))
                .isInstanceOf(OkHttpOutcomeUnknownException.class)
                .hasRootCauseMessage("Canceled");
        assertThat(received()).isEmpty();
    }

    private static Response endOf(Call call, boolean enqueued) throws Throwable {
        if (!enqueued) {
            return call.execute();
        }
        try {
            return enqueue(call).get(60, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            throw e.getCause();
        }
    }

    /** A body that takes ten seconds, unless the wire stops it. */
    private static RequestBody slow(long length, CountDownLatch begun, AtomicBoolean whole) {
        CountDownLatch never = new CountDownLatch(1);
        return body(length, sink -> {
            for (int i = 0; i < 1_000; i++) {
                sink.writeByte('s').flush();
                begun.countDown();
                try {
                    if (never.await(10, TimeUnit.MILLISECONDS)) {
                        throw new AssertionError("nobody counts down");
                    }
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                    throw new InterruptedIOException();
                }
            }
            whole.set(true);
        });
    }

    @ParameterizedTest
    @ValueSource(longs = {-1, 1_000})
    void cancelEndsACallWhileItsBodyIsProduced(long length) {
        CountDownLatch begun = new CountDownLatch(1);
        AtomicBoolean whole = new AtomicBoolean();
        Call call = installed().newCall(order().post(slow(length, begun, whole)).build());
        CompletableFuture<Response> response = enqueue(call);
        awaitLatch(begun);
        call.cancel();
        assertThatThrownBy(() -> response.get(60, TimeUnit.SECONDS))
                .hasCauseInstanceOf(OkHttpOutcomeUnknownException.class);
        assertThat(whole).isFalse();
        assertThat(received()).isEmpty();
    }

    /** By the deadline, which comes shortly before it, or on a busy machine by itself. */
    @ParameterizedTest
    @CsvSource({"-1,false", "1000,false", "-1,true", "1000,true"})
    void callTimeoutEndsACallWhileItsBodyIsProduced(long length, boolean inHandler) {
        AtomicBoolean whole = new AtomicBoolean();
        OkHttpClient client = installed(fast(), builder -> builder.callTimeout(Duration.ofMillis(500)));
        Runnable leave = inHandler ? InboundRequest.of("request-1").enter() : () -> {};
        try {
            assertThatThrownBy(() -> send(client, order().post(slow(length, new CountDownLatch(1), whole))))
                    .isInstanceOfAny(InterruptedIOException.class, OkHttpOutcomeUnknownException.class);
        } finally {
            leave.run();
        }
        assertThat(whole).isFalse();
        assertThat(received()).isEmpty();
    }

    @ParameterizedTest
    @CsvSource({"5,3", "5,0", "3,5", "20000,10000", "10000,20000", "2000000,1999999", "1999999,2000000"})
    void bodyOfAnotherLengthThanDeclaredFailsAsInOkHttp(int declared, int writes) {
        for (boolean inHandler : new boolean[] {false, true}) {
            RequestBody wrong = body(declared, sink -> sink.writeUtf8("x".repeat(writes)));
            Throwable plain = catchThrowable(() -> send(built(plain()), order().post(wrong)));
            Runnable leave = inHandler ? InboundRequest.of("request-1").enter() : () -> {};
            try {
                OkHttpClient client = installed();
                assertThatThrownBy(() -> send(client, order().post(wrong)))
                        .isExactlyInstanceOf(plain.getClass())
                        .hasMessage(plain.getMessage());
            } finally {
                leave.run();
            }
        }
        assertThat(received()).isEmpty();
        assertThat(events).hasSize(2).allMatch(event -> event.result() == FAILED && event.attempts() == 1);
    }

    /** Without a body a request is whole, and OkHttp 5.5 sends it before it looks at what is written. */
    @Test
    void bodyThatIsDeclaredEmptyAndIsNotMayHaveBeenSentWithoutItsContent() throws IOException {
        RequestBody wrong = body(0, sink -> sink.writeUtf8("x"));
        // A server of its own, because the request may arrive after this test.
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            Request.Builder order = to("http://127.0.0.1:" + server.getLocalPort() + "/orders");
            assertThatThrownBy(() -> send(installed(), order.post(wrong)))
                    .isInstanceOf(OkHttpOutcomeUnknownException.class)
                    .hasRootCauseInstanceOf(ProtocolException.class);
        }
    }

    /** A handler's call derives its ID from the body, which is therefore written before the request is sent. */
    @Test
    void bodyThatIsDeclaredEmptyAndIsNotIsNotSentByAHandler() {
        RequestBody wrong = body(0, sink -> sink.writeUtf8("x"));
        Runnable leave = InboundRequest.of("request-1").enter();
        try {
            OkHttpClient client = installed();
            assertThatThrownBy(() -> send(client, order().post(wrong)))
                    .isExactlyInstanceOf(ProtocolException.class)
                    .hasMessage("expected 0 bytes but received 1");
        } finally {
            leave.run();
        }
        assertThat(received()).isEmpty();
        assertThat(events).singleElement().matches(event -> event.result() == FAILED && event.attempts() == 1);
    }

    @Test
    void bodyThatThrowsFailsAsInOkHttp() {
        List<RequestBody> broken = new CopyOnWriteArrayList<>();
        for (int written : new int[] {0, 10, 100_000}) {
            broken.add(body(-1, sink -> {
                sink.writeUtf8("x".repeat(written));
                throw new IOException("the file is gone");
            }));
            broken.add(body(200_000, sink -> {
                sink.writeUtf8("x".repeat(written));
                throw new IllegalStateException("the file is gone");
            }));
        }
        OkHttpClient plain = built(plain());
        OkHttpClient client = installed();
        for (RequestBody body : broken) {
            Throwable expected = catchThrowable(() -> send(plain, order().post(body)));
            Throwable thrown = catchThrowable(() -> send(client, order().post(body)));
            assertThat(Endings.of(thrown)).isEqualTo(Endings.of(expected)).contains("the file is gone");
        }
        assertThat(received()).isEmpty();
        assertThat(events).hasSize(6).allMatch(event -> event.result() == FAILED);
    }

    /** Everything that it announced has left by then. */
    @Test
    void bodyThatThrowsAfterItsLastByteLeavesTheOutcomeUnknown() {
        CountDownLatch arrived = new CountDownLatch(1);
        try (RawServer server = RawServer.start((request, client) -> arrived.countDown())) {
            OkHttpClient client = installed();
            assertThatThrownBy(() -> send(client, to(server.url()).post(body(5, sink -> {
                        sink.writeUtf8("12345").flush();
                        awaitLatch(arrived);
                        throw new IOException("it cannot be closed");
                    }))))
                    .isInstanceOf(OkHttpOutcomeUnknownException.class)
                    .hasRootCauseMessage("it cannot be closed");
        }
        assertEnd(UNKNOWN, 1);
    }

    /** The end of what it compresses, and with it the end of the request, leaves when the sink is closed. */
    private static RequestBody compressedAndBroken(long length) {
        return body(length, sink -> {
            try (BufferedSink gzip = Okio.buffer(new GzipSink(sink))) {
                gzip.writeUtf8("half of the order");
                throw new IOException("the file is gone");
            }
        });
    }

    /** It was reported as not sent, though the server had the whole of the request. */
    @Test
    void bodyThatThrowsAfterItClosedItsSinkLeavesTheOutcomeUnknownOverHttp2() {
        CountDownLatch arrived = new CountDownLatch(1);
        try (Http2Server server = Http2Server.start(headers -> {
            arrived.countDown();
            return Http2Server.RESPOND;
        })) {
            OkHttpClient client = installed(fast(), builder -> builder.protocols(List.of(Protocol.H2_PRIOR_KNOWLEDGE)));
            assertThatThrownBy(() -> send(client, to(server.url()).post(compressedAndBroken(-1))))
                    .isInstanceOf(OkHttpOutcomeUnknownException.class)
                    .hasRootCauseMessage("the file is gone");
            awaitLatch(arrived);
            assertThat(server.requests()).hasSize(1);
        }
        assertEnd(UNKNOWN, 1);
    }

    @Test
    void bodyThatThrowsAfterItClosedItsSinkLeavesTheOutcomeUnknownOverHttp1() {
        OkHttpClient client = installed();
        assertThatThrownBy(() -> send(client, order().post(compressedAndBroken(-1))))
                .isInstanceOf(OkHttpOutcomeUnknownException.class)
                .hasRootCauseMessage("the file is gone");
        assertEnd(UNKNOWN, 1);
    }

    @Test
    void uncheckedExceptionAfterTheSinkWasClosedLeavesTheOutcomeUnknown() {
        OkHttpClient client = installed();
        RequestBody broken = body(-1, sink -> {
            sink.writeUtf8("half").close();
            throw new IllegalStateException("the file is gone");
        });
        assertThatThrownBy(() -> send(client, order().post(broken)))
                .isInstanceOf(OkHttpOutcomeUnknownException.class)
                .hasRootCauseMessage("the file is gone");
        assertEnd(UNKNOWN, 1);
    }

    /** OkHttp does not end a request that is too short, so nothing can have been executed. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void bodyThatClosesItsSinkTooEarlyFailsAsInOkHttp(boolean throwsAfterwards) {
        RequestBody broken = body(50, sink -> {
            try (sink) {
                sink.writeUtf8("half");
                if (throwsAfterwards) {
                    throw new IOException("the file is gone");
                }
            }
        });
        Throwable plain = catchThrowable(() -> send(built(plain()), order().post(broken)));
        OkHttpClient client = installed();
        assertThatThrownBy(() -> send(client, order().post(broken)))
                .isExactlyInstanceOf(plain.getClass())
                .hasMessage(plain.getMessage());
        assertThat(received()).isEmpty();
        assertEnd(FAILED, 1);
    }
}
