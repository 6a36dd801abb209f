package io.idempotence.client.feign;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import feign.Request;
import feign.http2client.Http2Client;
import io.idempotence.ClosedPort;
import io.idempotence.client.internal.http.CallThreads;
import io.idempotence.client.internal.http.Deadline;
import io.idempotence.client.internal.http.Watchdog;
import io.idempotence.client.internal.http.Watchdog.Watch;
import io.idempotence.internal.ThreadBound;
import java.io.IOException;
import java.net.ServerSocket;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;

/** A request that ends without a response is forgotten too. */
class CancellableHttp2Test {
    private final Watch watch = new Watchdog(new CallThreads(), LoggerFactory.getLogger(CancellableHttp2Test.class))
            .watch(Deadline.NEVER, Thread.currentThread());
    private final ThreadBound<Watch> sending = new ThreadBound<>();
    private final Request request = request(ClosedPort.url());
    private final CancellableHttp2 client;

    CancellableHttp2Test() throws ReflectiveOperationException {
        client = CancellableHttp2.like(new Http2Client(), sending);
    }

    @AfterEach
    void endTheWatch() {
        watch.ended();
    }

    private static Request request(String url) {
        return Request.create(Request.HttpMethod.POST, url, Map.of(), null, null, null);
    }

    @Test
    void failedRequestIsForgotten() {
        assertThatThrownBy(() -> sending.during(watch, () -> client.execute(request, new Request.Options())))
                .isInstanceOf(IOException.class);
        assertThat(client.watches.size()).isZero();
    }

    private CompletableFuture<?> sent(Request toSend) {
        return sending.during(watch, () -> client.execute(toSend, new Request.Options(), Optional.empty()));
    }

    @Test
    void failedAsynchronousRequestIsForgotten() {
        assertThatThrownBy(() -> sent(request).get())
                .isInstanceOf(ExecutionException.class)
                .hasCauseInstanceOf(IOException.class);
        CallsInFlightMemoryTest.assertFallsBelow(1, client.watches::size);
    }

    @Test
    void cancelledRequestIsForgotten() throws IOException {
        try (ServerSocket silent = new ServerSocket(0)) {
            Request hanging = request("http://localhost:" + silent.getLocalPort());
            CompletableFuture<?> response = sent(hanging);
            assertThat(client.watches.get(hanging)).isSameAs(watch);
            response.cancel(true);
            assertThat(client.watches.get(hanging)).isNull();
        }
    }

    @Test
    void asynchronousRequestThatCannotBeMadeIsForgotten() {
        Request unsendable = request("http://not a host/");
        assertThatThrownBy(() -> sent(unsendable)).isInstanceOf(IllegalArgumentException.class);
        assertThat(client.watches.get(unsendable)).isNull();
    }
}
