package io.idempotence.it.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import feign.Client;
import feign.Feign;
import feign.FeignException;
import feign.Request;
import feign.http2client.Http2Client;
import feign.micrometer.MicrometerCapability;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.it.wire.RawServer;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.IOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** HTTP clients inside of the one that Feign's Micrometer capability makes when it is added before the client half. */
class WrappedFeignClientIT {
    private static Orders orders(Client client, RawServer server) {
        Feign.Builder builder = Feign.builder()
                .client(client)
                .options(new Request.Options(60, TimeUnit.SECONDS, 60, TimeUnit.SECONDS, true))
                .addCapability(new MicrometerCapability(new SimpleMeterRegistry()));
        return WireMockTestBase.target(
                WireMockTestBase.install(
                        builder,
                        IdempotenceClientConfig.builder()
                                .deadline(Duration.ofSeconds(30))
                                .build()),
                server.url());
    }

    private static void write(Socket socket, String response) throws IOException {
        socket.getOutputStream().write(response.getBytes(StandardCharsets.ISO_8859_1));
    }

    /** Each of those clients has a thread of its own. */
    @Test
    void callsDoNotEachGetAJavaNetHttpClientOfTheirOwn() {
        Set<String> before = selectors();
        try (RawServer server =
                RawServer.start((request, socket) -> write(socket, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))) {
            Orders orders = orders(new Http2Client(), server);
            for (int i = 0; i < 50; i++) {
                assertThat(orders.create("x")).isEqualTo("ok");
            }
            assertThat(selectors()).filteredOn(name -> !before.contains(name)).hasSizeLessThan(3);
        }
    }

    private static Set<String> selectors() {
        return Thread.getAllStackTraces().keySet().stream()
                .map(Thread::getName)
                .filter(name -> name.startsWith("HttpClient-") && name.endsWith("-SelectorManager"))
                .collect(Collectors.toSet());
    }

    @Test
    void pageOfALoginIsNotTakenForTheResultOfAPost() {
        AtomicInteger requests = new AtomicInteger();
        try (RawServer server = RawServer.start((request, socket) -> {
            requests.incrementAndGet();
            write(
                    socket,
                    request.head().startsWith("POST")
                            ? "HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n"
                            : "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\nplease sign in");
        })) {
            Orders orders = orders(new Client.Default(null, null), server);
            assertThatThrownBy(() -> orders.create("x"))
                    .isInstanceOfSatisfying(
                            FeignException.class, e -> assertThat(e.status()).isEqualTo(302));
            assertThat(requests).hasValue(1);
        }
    }
}
