package io.idempotence.it.client;

import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.SUCCEEDED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import feign.AsyncFeign;
import feign.BaseBuilder;
import feign.Feign;
import feign.Request;
import feign.RetryableException;
import io.idempotence.client.feign.FeignOutcomeUnknownException;
import io.idempotence.it.wire.Http2Server;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import okhttp3.OkHttpClient;
import okhttp3.Protocol;
import org.eclipse.jetty.http2.ErrorCode;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Feign over OkHttp, whose streams are reset: a request that is refused, and one that was read to its end. */
class FeignHttp2IT extends WireMockTestBase {
    private final OkHttpClient http2 = new OkHttpClient.Builder()
            .protocols(List.of(Protocol.H2_PRIOR_KNOWLEDGE))
            .readTimeout(Duration.ofMinutes(4))
            .build();
    private boolean async;

    @AfterEach
    void closeHttp2() {
        http2.dispatcher().executorService().shutdown();
        http2.connectionPool().evictAll();
    }

    @Override
    BaseBuilder<?, ?> builder() {
        feign.okhttp.OkHttpClient client = new feign.okhttp.OkHttpClient(http2);
        return async ? AsyncFeign.builder().client(client) : Feign.builder().client(client);
    }

    private Orders orders(Http2Server server, boolean later) {
        async = later;
        return target(install(feign(), fast().build()), server.url());
    }

    @ParameterizedTest
    @CsvSource({
        "REFUSED_STREAM_ERROR, false",
        "REFUSED_STREAM_ERROR, true",
        "CANCEL_STREAM_ERROR, false",
        "CANCEL_STREAM_ERROR, true",
        "INTERNAL_ERROR, false",
        "INTERNAL_ERROR, true"
    })
    void resetStreamIsAskedForAgainWithTheSameIdAndIsUnknownAtTheEnd(ErrorCode error, boolean later) {
        try (Http2Server server = Http2Server.start(
                headers -> headers.get("Idempotency-Attempt").equals("1") ? error.code : Http2Server.RESPOND)) {
            orders(server, later).create("x");
            assertThat(server.values("Idempotency-Key")).hasSize(1).doesNotContain("null");
            assertThat(server.values("Idempotency-Attempt")).containsExactly("1", "2");
            assertEnd(SUCCEEDED, 2);
        }
        events.clear();
        try (Http2Server server = Http2Server.start(headers -> error.code)) {
            Orders orders = orders(server, later);
            assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
            assertThat(server.values("Idempotency-Key")).hasSize(1).doesNotContain("null");
            assertThat(server.values("Idempotency-Attempt")).containsExactly("1", "2", "3");
            assertEnd(UNKNOWN, 3);
        }
    }

    /** The client itself would wait for minutes. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void silentStreamEndsAtTheReadTimeoutAndIsAskedForAgain(boolean later) {
        try (Http2Server server = Http2Server.start(headers ->
                headers.get("Idempotency-Attempt").equals("1") ? Http2Server.STAY_SILENT : Http2Server.RESPOND)) {
            async = later;
            Orders orders = target(
                    install(
                            feign().options(new Request.Options(
                                    60, TimeUnit.SECONDS, 500, TimeUnit.MILLISECONDS, true)),
                            // On a busy machine the response to a later attempt may be late, too.
                            fast().maxAttempts(20)
                                    .deadline(Duration.ofMinutes(5))
                                    .build()),
                    server.url());
            orders.create("x");
            assertThat(server.values("Idempotency-Key")).hasSize(1).doesNotContain("null");
            List<String> attempts = server.values("Idempotency-Attempt");
            int last = Integer.parseInt(attempts.get(attempts.size() - 1));
            assertThat(last).isGreaterThan(1);
            assertEnd(SUCCEEDED, last);
        }
    }

    @ParameterizedTest
    @CsvSource({"CANCEL_STREAM_ERROR, false", "INTERNAL_ERROR, true"})
    void resetStreamOfACallWithoutAnIdIsTheUsualException(ErrorCode error, boolean later) {
        try (Http2Server server = Http2Server.start(headers -> error.code)) {
            Orders orders = orders(server, later);
            assertThatThrownBy(() -> orders.unprotected("x")).isExactlyInstanceOf(RetryableException.class);
            assertEnd(FAILED, 1);
        }
    }
}
