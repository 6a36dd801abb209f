package io.idempotence.it.server;

import static io.idempotence.it.container.Http.refusal;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.idempotence.it.container.Container;
import io.idempotence.it.container.ServletServer;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpUpgradeHandler;
import jakarta.servlet.http.WebConnection;
import java.io.IOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** Handlers that go on in another protocol. */
class UpgradesIT extends FilterTestBase {
    private static final String GREETING = "hello";

    /** A handler that greets its peer in a protocol of its own. */
    public static final class Greeter implements HttpUpgradeHandler {
        @Override
        public void init(WebConnection connection) {
            try {
                ServletOutputStream out = connection.getOutputStream();
                out.setWriteListener(new WriteListener() {
                    @Override
                    public void onWritePossible() throws IOException {
                        out.print(GREETING);
                        if (out.isReady()) {
                            out.flush();
                        }
                    }

                    @Override
                    public void onError(Throwable e) {
                        throw new IllegalStateException(e);
                    }
                });
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        }

        @Override
        public void destroy() {}
    }

    /** It got a 101 once more, and waited for a peer that was not there. */
    @Test
    @DisplayName("P4: a connection that was upgraded is not replayed")
    void aConnectionThatWasUpgradedIsNotReplayed() throws IOException {
        // Jetty 12.0 does not call the listener of an upgraded connection, with or without the filter.
        assumeThat(container != Container.JETTY || ServletServer.isServlet61()).isTrue();
        ServletServer server = serve((request, response) -> {
            response.setHeader("Upgrade", "greeting");
            request.upgrade(Greeter.class);
        });
        String request =
                "POST /payments HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: greeting\r\nIdempotency-Key: "
                        + id + "\r\nContent-Length: 12\r\n\r\n{\"amount\":5}";
        try (Socket socket = new Socket("127.0.0.1", server.port())) {
            socket.setSoTimeout(60_000);
            socket.getOutputStream().write(request.getBytes(StandardCharsets.ISO_8859_1));
            StringBuilder sent = new StringBuilder();
            for (int next = 0; next >= 0 && !sent.toString().endsWith(GREETING); ) {
                next = socket.getInputStream().read();
                sent.append((char) next);
            }
            assertThat(sent).startsWith("HTTP/1.1 101 ").endsWith(GREETING);
        }
        assertThat(refusal(awaitEnd(server))).isIn("result-unavailable", "outcome-unknown");
        assertThat(runs).hasValue(1);
    }
}
