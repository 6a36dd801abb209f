package io.idempotence.it.wire;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * A loopback server that reads one request from each connection and leaves the bytes of the response, or their absence, to its
 * handler. Each connection has a thread; it is closed when the handler returns.
 */
public final class RawServer implements AutoCloseable {
    /** The four bytes of two line ends. */
    private static final int END_OF_HEAD = 0x0d0a0d0a;

    private final ServerSocket listener;
    private final Handler handler;
    private final Set<Socket> open = ConcurrentHashMap.newKeySet();
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final CompletableFuture<Void> accepting;

    /** Responds, or not. */
    @FunctionalInterface
    public interface Handler {
        void handle(RawRequest request, Socket client) throws IOException;
    }

    private RawServer(ServerSocket listener, Handler handler) {
        this.listener = listener;
        this.handler = handler;
        this.accepting = CompletableFuture.runAsync(this::accept, threads);
    }

    public static RawServer start(Handler handler) {
        try {
            return new RawServer(new ServerSocket(0, 500, InetAddress.getLoopbackAddress()), handler);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public String url() {
        return "http://127.0.0.1:" + listener.getLocalPort();
    }

    /** Closes a connection so that its peer sees a reset instead of an end. */
    public static void reset(Socket socket) throws IOException {
        socket.setSoLinger(true, 0);
        socket.close();
    }

    /** Refuses connections from now on: a thread that still waits for one would get it, also after the listener was closed. */
    public void stopListening() throws IOException {
        listener.close();
        accepting.join();
    }

    private void accept() {
        while (!listener.isClosed()) {
            try {
                Socket client = listener.accept();
                open.add(client);
                threads.execute(() -> serve(client));
            } catch (IOException e) {
                // closed
            }
        }
    }

    private void serve(Socket client) {
        try (client) {
            RawRequest request = read(client.getInputStream());
            if (request != null) {
                handler.handle(request, client);
            }
        } catch (IOException e) {
            // the client went away, as the tests want it
        } catch (IllegalStateException e) {
            // A handler that waits is interrupted when the server closes. Otherwise Awaitility fails a later test for
            // it.
            if (!(e.getCause() instanceof InterruptedException)) {
                throw e;
            }
        } finally {
            open.remove(client);
        }
    }

    /** The next request of a connection, or null at its end. */
    public static RawRequest read(InputStream in) throws IOException {
        ByteArrayOutputStream head = new ByteArrayOutputStream();
        int last = 0;
        while (last != END_OF_HEAD) {
            int next = in.read();
            if (next < 0) {
                return null;
            }
            head.write(next);
            last = last << 8 | next;
        }
        RawRequest request = new RawRequest(head.toString(StandardCharsets.ISO_8859_1), new byte[0]);
        String length = request.header("Content-Length");
        return length == null ? request : new RawRequest(request.head(), in.readNBytes(Integer.parseInt(length)));
    }

    @Override
    public void close() {
        try {
            listener.close();
            for (Socket socket : open) {
                socket.close();
            }
            threads.shutdownNow();
            if (!threads.awaitTermination(60, TimeUnit.SECONDS)) {
                throw new IllegalStateException("a handler of a raw server does not end");
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
