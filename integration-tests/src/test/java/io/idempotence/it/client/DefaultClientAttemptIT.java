package io.idempotence.it.client;

import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import feign.AsyncFeign;
import feign.BaseBuilder;
import feign.Client;
import feign.Feign;
import feign.RetryableException;
import io.idempotence.client.feign.FeignOutcomeUnknownException;
import io.idempotence.it.wire.RawServer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class DefaultClientAttemptIT extends AttemptContract {
    @Override
    BaseBuilder<?, ?> builder() {
        return Feign.builder().client(new Client.Default(null, null));
    }

    /** It has streamed the body, and plain Feign reports an error. */
    @Override
    boolean makesAGetOfABody() {
        return false;
    }

    /** HttpURLConnection sends a body that it held back again by itself, and reports only that nobody was there the second time. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void requestHeldBackThatTheClientRepeatsByItselfIsNotTakenForNotSent(boolean async) {
        Client holding = new Client.Default(null, null, false);
        BaseBuilder<?, ?> builder = async
                ? AsyncFeign.builder().client(waitingFor(holding))
                : Feign.builder().client(holding);
        install(builder, fast().build());
        overAKeptConnection(builder, orders -> {
            assertThatThrownBy(() -> orders.unprotected("x")).isExactlyInstanceOf(RetryableException.class);
            assertEnd(FAILED, 1);
        });
        overAKeptConnection(builder, orders -> {
            assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
            assertEnd(UNKNOWN, 3);
        });
    }

    /** It streams a body, and so does not send it again, but there is none. */
    @Test
    void requestWithoutABodyThatTheClientRepeatsByItselfIsNotTakenForNotSent() {
        BaseBuilder<?, ?> builder = builder();
        install(builder, fast().build());
        overAKeptConnection(builder, orders -> {
            assertThatThrownBy(orders::tick).isInstanceOf(FeignOutcomeUnknownException.class);
            assertEnd(UNKNOWN, 3);
        });
    }

    /** The server takes one more request over the connection, resets it and listens no more. */
    private void overAKeptConnection(BaseBuilder<?, ?> builder, Consumer<Orders> call) {
        AtomicReference<RawServer> self = new AtomicReference<>();
        try (RawServer server = RawServer.start((request, client) -> {
            client.getOutputStream()
                    .write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".getBytes(StandardCharsets.ISO_8859_1));
            RawServer.read(client.getInputStream());
            self.get().stopListening();
            RawServer.reset(client);
        })) {
            self.set(server);
            Orders orders = target(builder, server.url());
            orders.create("opens a connection to be kept");
            events.clear();
            call.accept(orders);
        }
    }
}
