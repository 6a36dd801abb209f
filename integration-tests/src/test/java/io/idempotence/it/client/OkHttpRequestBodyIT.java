package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.aResponse;
import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.SUCCEEDED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static io.idempotence.it.wire.Latches.awaitLatch;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.github.tomakehurst.wiremock.http.Fault;
import com.github.tomakehurst.wiremock.verification.LoggedRequest;
import io.idempotence.InboundRequest;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import io.idempotence.client.okhttp.OkHttpOutcomeUnknownException;
import io.idempotence.it.behaviour.BehaviourServer;
import io.idempotence.it.wire.RawServer;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.ConnectException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import okhttp3.MultipartBody;
import okhttp3.OkHttpClient;
import okhttp3.RequestBody;
import okio.Okio;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Request bodies of calls with an ID: written once, to the wire, and repeated from what was captured meanwhile. */
@Timeout(180)
class OkHttpRequestBodyIT extends OkHttpInterceptorTestBase {
    private static final int LIMIT = 1024 * 1024;

    private static byte[] bytes(int size) {
        byte[] bytes = new byte[size];
        new Random(size).nextBytes(bytes);
        return bytes;
    }

    /** Can be read once, and does not say so. */
    private static RequestBody stream(byte[] bytes) {
        InputStream in = new ByteArrayInputStream(bytes);
        return body(-1, sink -> sink.writeAll(Okio.source(in)));
    }

    private static List<byte[]> receivedBodies() {
        return received().stream().map(LoggedRequest::getBody).toList();
    }

    /** The stream was read to be captured, up to the limit, and what was left of it was sent. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 8_193, LIMIT - 1, LIMIT, LIMIT + 1, 2_000_000, 20_000_000})
    void streamOfUnknownLengthArrivesWhole(int size) throws IOException {
        byte[] bytes = bytes(size);
        assertThat(ok(installed(), order().post(stream(bytes)))).isEqualTo(OK);
        assertThat(receivedBodies()).containsExactly(bytes);
        assertOneId();
    }

    @ParameterizedTest
    @ValueSource(ints = {1_000, 2_000_000})
    void streamInAMultipartBodyArrivesWhole(int size) throws IOException {
        byte[] bytes = bytes(size);
        RequestBody multipart = new MultipartBody.Builder()
                .addFormDataPart("order", "17")
                .addFormDataPart("file", "scan.pdf", stream(bytes))
                .build();
        ok(installed(), order().post(multipart));
        assertThat(received()).hasSize(1);
        assertThat(received().get(0).getPart("file").getBody().asBytes()).isEqualTo(bytes);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, LIMIT})
    void streamWithinTheLimitIsRepeatedByteByByte(int size) throws IOException {
        attempt(1, aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
        attempt(2, status(503).withHeader("Retry-After", "0"));
        byte[] bytes = bytes(size);
        assertThat(ok(installed(), order().post(stream(bytes)))).isEqualTo(OK);
        assertThat(receivedBodies())
                .hasSize(4)
                .allSatisfy(body -> assertThat(body).isEqualTo(bytes));
        assertOneId();
    }

    @Test
    void streamBeyondTheLimitIsSentOnceAndItsResponseIsTheResult() throws IOException {
        alwaysGet(status(503).withHeader("Retry-After", "0"));
        assertThat(status(installed(), order().post(stream(bytes(LIMIT + 1))))).isEqualTo(503);
        assertThat(received()).hasSize(1);
        assertEnd(FAILED, 1);
    }

    @Test
    void streamBeyondTheLimitIsSentOnceAndUnknownIfItsResponseIsLost() {
        alwaysGet(aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
        OkHttpClient client = installed();
        assertThatThrownBy(() -> send(client, order().post(stream(bytes(LIMIT + 1)))))
                .isInstanceOf(OkHttpOutcomeUnknownException.class);
        assertThat(received()).hasSize(1);
        assertEnd(UNKNOWN, 1);
    }

    /** OkHttp would follow, and send what is left of the stream: nothing. */
    @Test
    void redirectOfAStreamThatCannotBeRepeatedIsTheResponse() throws IOException {
        alwaysGet(status(307).withHeader("Location", "/other"));
        assertThat(status(installed(), order().post(stream(bytes(LIMIT + 1))))).isEqualTo(307);
        assertThat(received()).hasSize(1);
    }

    /** Nothing was captured before there was a connection. */
    @Test
    void streamThatWasNotSentIsStillThere() throws IOException {
        OkHttpClient client = installed();
        byte[] bytes = bytes(2_000_000);
        RequestBody stream = stream(bytes);
        assertThatThrownBy(() -> send(client, to(nobody()).post(stream))).isExactlyInstanceOf(ConnectException.class);
        assertEnd(FAILED, 3);
        ok(client, order().post(stream));
        assertThat(receivedBodies()).containsExactly(bytes);
    }

    /** Its length says that it is finite, and OkHttp itself would not let a shorter one pass. */
    @Test
    void longBodyOfKnownLengthIsWrittenForEachAttempt() throws IOException {
        attempt(1, aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
        byte[] bytes = bytes(3_000_000);
        ok(installed(), order().post(RequestBody.create(bytes, TEXT)));
        assertThat(attempts()).containsExactly("1", "2");
        assertThat(receivedBodies()).allSatisfy(body -> assertThat(body).isEqualTo(bytes));
    }

    /** What the wire did not take is captured as well. */
    @Test
    void connectionThatBreaksWhileTheBodyIsWrittenCostsOneAttempt() throws Exception {
        byte[] bytes = bytes(LIMIT);
        CountDownLatch broken = new CountDownLatch(1);
        AtomicInteger connections = new AtomicInteger();
        CompletableFuture<byte[]> arrived = new CompletableFuture<>();
        try (RawServer server = RawServer.start((request, client) -> {
            if (connections.incrementAndGet() == 1) {
                client.getInputStream().readNBytes(20_000);
                RawServer.reset(client);
                broken.countDown();
                return;
            }
            arrived.complete(BehaviourServer.readBody(request, client.getInputStream()));
            client.getOutputStream()
                    .write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".getBytes(StandardCharsets.US_ASCII));
        })) {
            InputStream in = new ByteArrayInputStream(bytes);
            RequestBody slow = body(-1, sink -> {
                sink.write(in.readNBytes(100_000)).flush();
                awaitLatch(broken);
                sink.writeAll(Okio.source(in));
            });
            assertThat(ok(installed(), to(server.url()).post(slow))).isEqualTo(OK);
            assertThat(arrived.get(60, TimeUnit.SECONDS)).isEqualTo(bytes);
        }
        assertEnd(SUCCEEDED, 2);
    }

    /** A body that compresses closes the sink that it writes to. */
    @Test
    void bodyThatClosesItsSinkIsRepeated() throws IOException {
        attempt(1, status(503));
        ok(installed(), order().post(body(-1, sink -> sink.writeUtf8("closed").close())));
        assertThat(bodies()).containsExactly("closed", "closed");
    }

    private static List<String> idsInTwoExecutions(List<List<RequestBody>> executions, OkHttpClient client)
            throws IOException {
        for (List<RequestBody> bodies : executions) {
            Runnable leave = InboundRequest.of("request-1").enter();
            try {
                for (RequestBody body : bodies) {
                    ok(client, order().post(body));
                }
            } finally {
                leave.run();
            }
        }
        return ids();
    }

    /** It is not read before it is sent, so the order of such calls is what their IDs go by. */
    @Test
    void streamOfAHandlerArrivesWholeAndItsNextExecutionRepeatsItsId() throws IOException {
        byte[] bytes = bytes(2_000_000);
        List<String> ids = idsInTwoExecutions(
                List.of(List.of(stream(bytes), stream(bytes(5))), List.of(stream(bytes), stream(bytes(5)))),
                installed());
        assertThat(receivedBodies().get(0)).isEqualTo(bytes);
        assertThat(receivedBodies().get(2)).isEqualTo(bytes);
        assertThat(ids.subList(0, 2)).doesNotHaveDuplicates().isEqualTo(ids.subList(2, 4));
    }

    @Test
    void bodiesOfKnownLengthKeepTheirIdsInAnotherOrder() throws IOException {
        RequestBody one = RequestBody.create("one", TEXT);
        RequestBody two = RequestBody.create("two", TEXT);
        List<String> ids = idsInTwoExecutions(List.of(List.of(one, two), List.of(two, one)), installed());
        assertThat(ids.subList(2, 4)).containsExactly(ids.get(1), ids.get(0)).doesNotHaveDuplicates();
    }

    /** It is read before it is sent, and what was read is what is sent. */
    @Test
    void bodyOfKnownLengthThatCanBeReadOnceArrivesWholeFromAHandler() throws IOException {
        byte[] bytes = bytes(10_000);
        InputStream in = new ByteArrayInputStream(bytes);
        idsInTwoExecutions(List.of(List.of(body(bytes.length, sink -> sink.writeAll(Okio.source(in))))), installed());
        assertThat(receivedBodies()).containsExactly(bytes);
    }

    /** Where another interceptor hides that the body cannot be repeated, OkHttp does not know. */
    @Test
    void spentBodyIsNotSentEmptyBelowAnInterceptorThatWrapsIt() throws IOException {
        OkHttpClient client = built(IdempotentOkHttp.install(plain(), fast().build(), "orders")
                .addInterceptor(chain -> {
                    RequestBody inner = chain.request().body();
                    return chain.proceed(chain.request()
                            .newBuilder()
                            .post(body(-1, inner::writeTo))
                            .build());
                }));
        alwaysGet(status(408));
        assertThatThrownBy(() -> send(client, order().post(stream(bytes(LIMIT + 1)))))
                .isInstanceOf(IOException.class)
                .hasStackTraceContaining("cannot be written again");
        assertThat(received()).hasSize(1);
    }
}
