package io.idempotence.it.client;

import static io.idempotence.client.IdempotenceClientEvent.Result.SUCCEEDED;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import io.idempotence.it.wire.RawRequest;
import io.idempotence.it.wire.RawServer;
import java.io.IOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.Response;
import okhttp3.WebSocket;
import okhttp3.WebSocketListener;
import org.junit.jupiter.api.Test;

/** A web socket of a client with the client half. Its upgrade is not a call that could be retried. */
class OkHttpWebSocketIT extends OkHttpInterceptorTestBase {
    private static final byte[] TEXT_FRAME_OK = {(byte) 0x81, 2, 'o', 'k'};

    private final List<RawRequest> upgrades = new CopyOnWriteArrayList<>();

    /** The client's first message. */
    private static final class FirstMessage extends WebSocketListener {
        final CompletableFuture<String> text = new CompletableFuture<>();

        @Override
        public void onMessage(WebSocket socket, String message) {
            text.complete(message);
            socket.cancel();
        }

        @Override
        public void onFailure(WebSocket socket, Throwable failure, Response response) {
            text.completeExceptionally(failure);
        }
    }

    private RawServer server(RawServer.Handler handler) {
        return RawServer.start((request, client) -> {
            upgrades.add(request);
            handler.handle(request, client);
        });
    }

    /** RFC 6455, section 1.3. */
    private static void greetAndSayOk(RawRequest request, Socket client) throws IOException {
        String key = request.header("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
        client.getOutputStream()
                .write(("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                + "Sec-WebSocket-Accept: " + Base64.getEncoder().encodeToString(sha1(key)) + "\r\n\r\n")
                        .getBytes(StandardCharsets.ISO_8859_1));
        client.getOutputStream().write(TEXT_FRAME_OK);
        // Until the client closes.
        client.getInputStream().readAllBytes();
    }

    private static byte[] sha1(String text) {
        try {
            return MessageDigest.getInstance("SHA-1").digest(text.getBytes(StandardCharsets.ISO_8859_1));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }

    private static String firstMessage(OkHttpClient client, RawServer server) throws Exception {
        FirstMessage first = new FirstMessage();
        client.newWebSocket(new Request.Builder().url(server.url()).build(), first);
        return first.text.get(60, TimeUnit.SECONDS);
    }

    @Test
    void socketIsOpenedWithoutAnIdAndIsNoCallToReport() throws Exception {
        OkHttpClient client = installed();
        List<String> warnings;
        try (RawServer server = server(OkHttpWebSocketIT::greetAndSayOk)) {
            warnings = warnings(() -> assertThat(
                            IdempotenceScope.with(new IdempotenceId("job-1"), () -> firstMessage(client, server)))
                    .isEqualTo("ok"));
        }
        assertThat(upgrades)
                .singleElement()
                .satisfies(upgrade -> assertThat(upgrade.head())
                        .doesNotContainIgnoringCase("idempotency-")
                        .doesNotContainIgnoringCase("prefer:"));
        assertThat(events).isEmpty();
        assertThat(warnings).isEmpty();
    }

    /** Sockets are opened with GET. */
    @Test
    void postThatAsksForAnUpgradeIsACallAsAnyOther() throws IOException {
        OkHttpClient client = installed();
        try (RawServer server = server((request, socket) -> socket.getOutputStream()
                .write(("HTTP/1.1 " + (upgrades.size() == 1 ? "503 No" : "200 OK")
                                + "\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
                        .getBytes(StandardCharsets.ISO_8859_1)))) {
            assertThat(ok(client, to(server.url()).header("Upgrade", "websocket")))
                    .isEqualTo(OK);
        }
        assertThat(upgrades.stream().map(upgrade -> upgrade.header("Idempotency-Key")))
                .hasSize(2)
                .doesNotContainNull();
        assertEnd(SUCCEEDED, 2);
    }

    /** Who opens web sockets has a rule of his own for opening them again. */
    @Test
    void refusedUpgradeIsNotRetried() {
        OkHttpClient client = built(IdempotentOkHttp.install(plain(), fast().build()));
        try (RawServer server = server((request, socket) -> socket.getOutputStream()
                .write("HTTP/1.1 503 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                        .getBytes(StandardCharsets.ISO_8859_1)))) {
            assertThatThrownBy(() -> firstMessage(client, server)).hasMessageContaining("503");
        }
        assertThat(upgrades).hasSize(1);
        assertThat(events).isEmpty();
    }
}
