package io.idempotence.it.wire;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.util.ArrayList;
import java.util.List;

/** A listener that accepts nothing and whose backlog is full, so that further connections wait. */
public final class FullBacklog implements AutoCloseable {
    private final ServerSocket listener = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
    private final List<Socket> fillers = new ArrayList<>();

    public FullBacklog() throws IOException {
        for (boolean full = false; !full; ) {
            assertThat(fillers).as("connections that a backlog of 1 takes").hasSizeLessThan(100);
            Socket filler = new Socket();
            fillers.add(filler);
            try {
                filler.connect(new InetSocketAddress(listener.getInetAddress(), listener.getLocalPort()), 200);
            } catch (SocketTimeoutException e) {
                full = true;
            }
        }
    }

    public String url() {
        return "http://127.0.0.1:" + listener.getLocalPort();
    }

    @Override
    public void close() throws IOException {
        for (Socket filler : fillers) {
            filler.close();
        }
        listener.close();
    }
}
