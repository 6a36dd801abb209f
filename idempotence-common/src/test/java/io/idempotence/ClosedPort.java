package io.idempotence;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;

/**
 * A loopback port that refuses connections for as long as this process runs: it is bound, and nothing listens on it. A port that was
 * merely free a moment ago may belong to a server of another test by now.
 */
public final class ClosedPort {
    private static final Socket BOUND = bound();

    private ClosedPort() {}

    private static Socket bound() {
        try {
            Socket socket = new Socket();
            socket.bind(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0));
            return socket;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The address, as host:port. */
    public static String address() {
        return "127.0.0.1:" + BOUND.getLocalPort();
    }

    /** The address, as an origin of HTTP. */
    public static String url() {
        return "http://" + address();
    }
}
