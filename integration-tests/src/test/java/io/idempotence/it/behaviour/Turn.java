package io.idempotence.it.behaviour;

import io.idempotence.it.wire.RawRequest;
import io.idempotence.it.wire.RawServer;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.zip.GZIPOutputStream;

/** One request, and the server's means to treat its client. The connection stays open unless it is closed here. */
public final class Turn {
    private final BehaviourServer server;
    private final Socket socket;
    private final int number;
    private final RawRequest request;
    private boolean closed;

    Turn(BehaviourServer server, Socket socket, int number, RawRequest request) {
        this.server = server;
        this.socket = socket;
        this.number = number;
        this.request = request;
    }

    /** Of all requests since the run began, on whatever connection and origin: 1 for the first. */
    public int number() {
        return number;
    }

    public RawRequest request() {
        return request;
    }

    public String origin() {
        return server.origin();
    }

    public String otherOrigin() {
        return server.otherOrigin();
    }

    /** An origin that refuses connections. */
    public String nobody() {
        return server.nobody();
    }

    /** A whole response with a short body. */
    public void respond(String status, String... headers) throws IOException {
        String body = "this is " + status;
        raw("HTTP/1.1 " + status + "\r\n"
                + Arrays.stream(headers).map(header -> header + "\r\n").reduce("", String::concat)
                + "Content-Type: text/plain\r\nContent-Length: " + body.length() + "\r\n\r\n" + body);
    }

    /** A redirect of the first request; the one that follows it gets a response. */
    public void redirect(String status, String location) throws IOException {
        if (number == 1) {
            respond(status, "Location: " + location);
        } else {
            respond("200 OK");
        }
    }

    /** A compressed body, without its last bytes. */
    public void gzip(int missing) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (GZIPOutputStream gzip = new GZIPOutputStream(bytes)) {
            gzip.write("this was compressed".getBytes(StandardCharsets.US_ASCII));
        }
        int length = bytes.size() - missing;
        raw("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: " + length + "\r\n\r\n");
        socket.getOutputStream().write(bytes.toByteArray(), 0, length);
    }

    public void raw(String bytes) throws IOException {
        socket.getOutputStream().write(bytes.getBytes(StandardCharsets.ISO_8859_1));
    }

    /** These bytes, and the end of the connection. */
    public void last(String bytes) throws IOException {
        raw(bytes);
        close();
    }

    public void close() throws IOException {
        closed = true;
        socket.close();
    }

    public void reset() throws IOException {
        closed = true;
        RawServer.reset(socket);
    }

    /** Says nothing more until the client goes. */
    public void hang() throws IOException {
        InputStream in = socket.getInputStream();
        while (in.read() >= 0) {
            // nothing is expected
        }
        close();
    }

    /** Takes what the client still sends of its request. */
    public void readBody() throws IOException {
        BehaviourServer.readBody(request, socket.getInputStream());
    }

    boolean isClosed() {
        return closed;
    }
}
