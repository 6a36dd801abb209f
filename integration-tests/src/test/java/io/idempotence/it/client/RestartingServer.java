package io.idempotence.it.client;

import io.idempotence.it.wire.RawServer;
import java.io.IOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/** A server that gives its first request an error status, and has stopped listening by then. */
final class RestartingServer implements AutoCloseable {
    private final String response;
    private final RawServer server;

    RestartingServer(int status) {
        this.response = "HTTP/1.1 " + status
                + " Failed\r\nContent-Length: 4\r\nX-Grund: \u00fcber\r\nConnection: close\r\n\r\noops";
        this.server = RawServer.start((request, socket) -> respond(socket));
    }

    private void respond(Socket socket) throws IOException {
        server.stopListening();
        socket.getOutputStream().write(response.getBytes(StandardCharsets.ISO_8859_1));
    }

    String url() {
        return server.url();
    }

    @Override
    public void close() {
        server.close();
    }
}
