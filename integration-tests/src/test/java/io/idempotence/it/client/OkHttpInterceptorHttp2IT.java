package io.idempotence.it.client;

import static io.idempotence.client.IdempotenceClientEvent.Result.SUCCEEDED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.client.okhttp.OkHttpOutcomeUnknownException;
import io.idempotence.it.wire.Http2Server;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import okhttp3.MediaType;
import okhttp3.OkHttpClient;
import okhttp3.Protocol;
import okhttp3.RequestBody;
import okio.BufferedSink;
import org.eclipse.jetty.http2.ErrorCode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Streams that an HTTP/2 server resets after it read the whole request, some of which OkHttp sends again by itself. */
class OkHttpInterceptorHttp2IT extends OkHttpInterceptorTestBase {
    private OkHttpClient http2() {
        return installed(fast(), builder -> builder.protocols(List.of(Protocol.H2_PRIOR_KNOWLEDGE)));
    }

    @ParameterizedTest
    @EnumSource(names = {"REFUSED_STREAM_ERROR", "CANCEL_STREAM_ERROR", "INTERNAL_ERROR"})
    void resetStreamIsAskedForAgainWithTheSameId(ErrorCode error) throws IOException {
        try (Http2Server server = Http2Server.start(
                headers -> headers.get("Idempotency-Attempt").equals("1") ? error.code : Http2Server.RESPOND)) {
            assertThat(status(http2(), to(server.url()))).isEqualTo(200);
            assertThat(server.values("Idempotency-Key")).hasSize(1).doesNotContain("null");
            assertThat(server.values("Idempotency-Attempt")).containsExactly("1", "2");
            assertEnd(SUCCEEDED, 2);
            assertThat(events.get(0).requests()).isEqualTo(2);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"REFUSED_STREAM_ERROR", "CANCEL_STREAM_ERROR", "INTERNAL_ERROR"})
    void streamThatIsAlwaysResetIsUnknown(ErrorCode error) {
        try (Http2Server server = Http2Server.start(headers -> error.code)) {
            OkHttpClient client = http2();
            assertThatThrownBy(() -> send(client, to(server.url()))).isInstanceOf(OkHttpOutcomeUnknownException.class);
            assertThat(server.values("Idempotency-Key")).hasSize(1);
            assertThat(server.values("Idempotency-Attempt")).containsExactly("1", "2", "3");
            assertEnd(UNKNOWN, 3);
        }
    }

    @Test
    void resetStreamOfACallWithoutAnIdIsTheUsualException() {
        try (Http2Server server = Http2Server.start(headers -> ErrorCode.CANCEL_STREAM_ERROR.code)) {
            OkHttpClient client = http2();
            assertThatThrownBy(() -> send(client, to(server.url()).put(RequestBody.create("x", TEXT))))
                    .isInstanceOf(IOException.class)
                    .isNotInstanceOf(OkHttpOutcomeUnknownException.class);
            assertThat(events).isEmpty();
        }
    }

    @Test
    void duplexBodyIsNotSentAgain() {
        AtomicInteger writes = new AtomicInteger();
        RequestBody duplex = new RequestBody() {
            @Override
            public MediaType contentType() {
                return TEXT;
            }

            @Override
            public void writeTo(BufferedSink sink) throws IOException {
                writes.incrementAndGet();
                sink.writeUtf8("x");
                sink.close();
            }

            @Override
            public boolean isDuplex() {
                return true;
            }
        };
        try (Http2Server server = Http2Server.start(headers -> ErrorCode.INTERNAL_ERROR.code)) {
            OkHttpClient client = http2();
            assertThatThrownBy(() -> send(client, to(server.url()).post(duplex)))
                    .isInstanceOf(OkHttpOutcomeUnknownException.class);
            assertThat(server.requests()).hasSize(1);
        }
        assertThat(writes).hasValue(1);
        assertEnd(UNKNOWN, 1);
    }
}
