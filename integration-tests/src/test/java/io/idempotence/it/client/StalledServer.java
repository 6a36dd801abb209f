package io.idempotence.it.client;

import static io.idempotence.it.wire.Latches.awaitLatch;

import io.idempotence.it.wire.FullBacklog;
import io.idempotence.it.wire.RawServer;
import io.idempotence.it.wire.TestTls;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** A server that serves an exchange up to one {@link ExchangeStage}, and then stalls or goes on byte by byte until it is closed. */
final class StalledServer implements AutoCloseable {
    private final ExchangeStage stage;
    private final FullBacklog backlog;
    private final ServerSocket listener;
    private final List<Socket> accepted = new ArrayList<>();
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final CountDownLatch reached = new CountDownLatch(1);

    /** Whether at least the first byte of the request has arrived. */
    volatile boolean received;

    StalledServer(ExchangeStage stage) throws IOException {
        this.stage = stage;
        if (stage == ExchangeStage.CONNECT) {
            backlog = new FullBacklog();
            listener = null;
            return;
        }
        backlog = null;
        listener = new ServerSocket();
        listener.setReceiveBufferSize(4096);
        listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 50);
        threads.execute(this::accept);
    }

    private void accept() {
        try {
            while (true) {
                Socket socket = listener.accept();
                keep(socket);
                threads.execute(() -> serve(socket));
            }
        } catch (IOException e) {
            // closed
        }
    }

    private void keep(Socket socket) {
        synchronized (accepted) {
            accepted.add(socket);
        }
    }

    private void serve(Socket socket) {
        try {
            if (stage.isBeforeConnection()) {
                reached.countDown();
                stage.peer.treat(socket);
                return;
            }
            Socket open = stage.isTls() ? TestTls.accept(socket) : socket;
            // The JDK closes a TLS socket that is garbage.
            keep(open);
            if (stage.isOfRequestBody()
                    ? open.getInputStream().read() >= 0
                    : RawServer.read(open.getInputStream()) != null) {
                received = true;
                reached.countDown();
                stage.peer.treat(open);
            }
        } catch (IOException e) {
            // the client went away
        }
    }

    String url() {
        String url = backlog != null ? backlog.url() : "http://127.0.0.1:" + listener.getLocalPort();
        return stage.isTls() ? url.replace("http:", "https:") : url;
    }

    /**
     * Waits until a request has reached the stage. Returns at once for {@code CONNECT}, because a waiting connection cannot be observed.
     */
    void awaitRequest() throws InterruptedException {
        if (backlog == null) {
            awaitLatch(reached);
        }
    }

    @Override
    public void close() throws IOException {
        if (backlog != null) {
            backlog.close();
        } else {
            listener.close();
        }
        synchronized (accepted) {
            for (Socket socket : accepted) {
                socket.close();
            }
        }
        threads.shutdownNow();
    }
}
