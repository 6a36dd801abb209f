package io.idempotence.it.client;

import io.idempotence.it.wire.Drip;
import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** A stage of an HTTP exchange at which the server stalls, or goes on byte by byte. */
enum ExchangeStage {
    CONNECT,
    TLS(socket -> Drip.write(socket, "\u0016\u0003\u0003@\u0000" + "x".repeat(100_000))),
    TLS_STALL(socket -> {}),
    REQUEST_BODY(ExchangeStage::takeSlowly),
    REQUEST_BODY_STALL(socket -> {}),
    REQUEST_BODY_OVER_TLS(ExchangeStage::takeSlowly),
    REQUEST_BODY_OVER_TLS_STALL(socket -> {}),
    STATUS_LINE(socket -> drip(socket, "HTTP/1.1 200 ")),
    STATUS_LINE_STALL(socket -> write(socket, "HTTP/1.1 2")),
    HEADERS(socket -> drip(socket, "HTTP/1.1 200 OK\r\nX-Drip: ")),
    HEADERS_STALL(socket -> write(socket, "HTTP/1.1 200 OK\r\nX-Stall: ")),
    BODY(socket -> drip(socket, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")),
    BODY_STALL(socket -> write(socket, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nhalf")),
    COMPRESSED_BODY_STALL(
            socket -> write(socket, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1000000\r\n\r\n")),
    ERROR_BODY(socket -> drip(socket, "HTTP/1.1 422 No\r\nContent-Length: 1000000\r\n\r\n")),
    ERROR_BODY_STALL(socket -> write(socket, "HTTP/1.1 422 No\r\nContent-Length: 1000000\r\n\r\nhalf"));

    /** Twice as much as the largest send buffer of Linux by default. The receive buffer of the server is small. */
    private static final String LARGE = "x".repeat(8 << 20);

    final Peer peer;

    ExchangeStage() {
        this(socket -> {});
    }

    ExchangeStage(Peer peer) {
        this.peer = peer;
    }

    boolean isBeforeConnection() {
        return this == CONNECT || name().startsWith("TLS");
    }

    boolean isTls() {
        return name().contains("TLS");
    }

    boolean isOfRequestBody() {
        return name().startsWith("REQUEST_BODY");
    }

    String body() {
        return isOfRequestBody() ? LARGE : "x";
    }

    /** Each stage once: those where the server stalls are left out. */
    static Stream<ExchangeStage> columns() {
        return Stream.of(values()).filter(stage -> !stage.name().endsWith("_STALL"));
    }

    String title() {
        return name().toLowerCase(Locale.ROOT).replace('_', ' ').replace("tls", "TLS");
    }

    static void write(Socket socket, String bytes) throws IOException {
        socket.getOutputStream().write(bytes.getBytes(StandardCharsets.ISO_8859_1));
    }

    private static void drip(Socket socket, String before) throws IOException {
        write(socket, before);
        Drip.write(socket, "x".repeat(1_000_000));
    }

    private static void takeSlowly(Socket socket) throws IOException {
        InputStream in = socket.getInputStream();
        CountDownLatch closed = new CountDownLatch(1);
        try {
            while (in.read() >= 0 && !closed.await(10, TimeUnit.MILLISECONDS)) {
                // One byte now and then.
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    interface Peer {
        void treat(Socket socket) throws IOException;
    }
}
