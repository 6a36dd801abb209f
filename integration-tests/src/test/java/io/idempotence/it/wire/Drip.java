package io.idempotence.it.wire;

import java.io.EOFException;
import java.io.IOException;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;

/** The writes of a slow server, byte by byte, for as long as its client listens: no read of the client ever waits for long. */
public final class Drip {
    private static final int PATIENCE_MILLIS = 10;

    private Drip() {}

    /** Writes one byte after another, each when the client has not gone for a moment. */
    public static void write(Socket client, String text) throws IOException {
        for (byte drop : text.getBytes(StandardCharsets.ISO_8859_1)) {
            client.getOutputStream().write(drop);
            client.getOutputStream().flush();
            awaitLeaving(client);
        }
    }

    /** Begins a status line that never ends, until the client goes. */
    public static void forEver(Socket client) throws IOException {
        while (true) {
            write(client, "H");
        }
    }

    /** @throws IOException as soon as the client goes */
    private static void awaitLeaving(Socket client) throws IOException {
        client.setSoTimeout(PATIENCE_MILLIS);
        try {
            if (client.getInputStream().read() < 0) {
                throw new EOFException("the client has gone");
            }
        } catch (SocketTimeoutException e) {
            // It listens still.
        }
    }
}
