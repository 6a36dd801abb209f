package io.idempotence.it.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import feign.Client;
import feign.Feign;
import feign.Request;
import feign.Response;
import feign.http2client.Http2Client;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.OutcomeUnknown;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** An interrupt that comes just before a read of a body from {@code java.net.http}. On JDK 17 such a read swallows it. */
class SwallowedInterruptIT {
    @Test
    void interruptJustBeforeAReadOfBytesThatHaveArrivedEndsTheCall() throws Exception {
        try (StalledServer server = new StalledServer(ExchangeStage.BODY_STALL)) {
            IdempotenceClientConfig config = IdempotenceClientConfig.builder()
                    .deadline(Duration.ofSeconds(60))
                    .maxAttempts(1)
                    .build();
            Feign.Builder builder = Feign.builder().client(new InterruptedClient(new Http2Client()));
            Orders orders = WireMockTestBase.target(WireMockTestBase.install(builder, config), server.url());
            InterruptedCaller caller = new InterruptedCaller(() -> orders.create("x"));
            assertThat(caller.thrown()).isInstanceOf(OutcomeUnknown.class);
            assertThat(caller.keptItsFlag()).isTrue();
        }
    }

    private record InterruptedClient(Client inside) implements Client {
        @Override
        public Response execute(Request request, Request.Options options) throws IOException {
            Response response = inside.execute(request, options);
            InputStream body = new InterruptedBody(response.body().asInputStream(), Thread.currentThread());
            return response.toBuilder().body(body, response.body().length()).build();
        }
    }

    /** A body whose first bytes have arrived, and that interrupts the caller just before they are read. */
    private static final class InterruptedBody extends FilterInputStream {
        private final Thread caller;
        private boolean interrupted;

        InterruptedBody(InputStream in, Thread caller) {
            super(in);
            this.caller = caller;
        }

        @Override
        public int available() throws IOException {
            if (!interrupted) {
                await().until(() -> in.available() > 0);
            }
            return in.available();
        }

        @Override
        public int read(byte[] buffer, int offset, int length) throws IOException {
            if (!interrupted) {
                interrupted = true;
                caller.interrupt();
            }
            return in.read(buffer, offset, length);
        }
    }
}
