package io.idempotence.server.redis;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/**
 * A proxy that can hold back the bytes of one direction or both. It passes them on later, in order, even if the client has given up in the
 * meantime. It can also lose the replies, or reset its connections.
 */
public final class DelayProxy implements AutoCloseable {
    private final ServerSocket listener;
    private volatile int target;
    private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
    private final AtomicInteger accepted = new AtomicInteger();
    private final Object gate = new Object();
    private boolean requestsHeld;
    private boolean repliesHeld;
    private volatile boolean closed;
    private volatile boolean cut;
    private volatile boolean silent;
    private final Supplier<Tap> taps;

    /** An observer of the bytes on one connection, before they are passed on. It may change them, or throw to close the connection. */
    @FunctionalInterface
    public interface Tap {
        void passes(boolean requests, byte[] bytes, int length) throws IOException;
    }

    public DelayProxy(int target) {
        this(target, () -> (requests, bytes, length) -> {});
    }

    /** @param taps returns an observer for each connection */
    public DelayProxy(int target, Supplier<Tap> taps) {
        this.target = target;
        this.taps = taps;
        try {
            this.listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        start(this::accept);
    }

    /** From now on new connections go to another server; those that are open stay where they are. */
    void target(int port) {
        target = port;
    }

    /** How many connections were accepted so far. */
    int connections() {
        return accepted.get();
    }

    public int port() {
        return listener.getLocalPort();
    }

    public String address() {
        return "127.0.0.1:" + port();
    }

    public void holdRequests() {
        hold(true, false);
    }

    public void holdReplies() {
        hold(false, true);
    }

    public void letGo() {
        hold(false, false);
    }

    /** Resets the connections that are open, and new ones until {@link #repair}. */
    public void cut() {
        cut = true;
        sockets.forEach(DelayProxy::reset);
    }

    /** From now on requests arrive, and their replies are lost. */
    public void silence() {
        silent = true;
    }

    /** Ends {@link #cut} and {@link #silence}. Connections begin anew: after a gap nothing may follow. */
    public void repair() {
        silent = false;
        cut = false;
        sockets.forEach(DelayProxy::reset);
    }

    private static void reset(Socket socket) {
        try {
            socket.setSoLinger(true, 0);
            socket.close();
        } catch (IOException e) {
            // closed already
        }
    }

    private void hold(boolean requests, boolean replies) {
        synchronized (gate) {
            requestsHeld = requests;
            repliesHeld = replies;
            gate.notifyAll();
        }
    }

    private void accept() throws IOException {
        while (true) {
            Socket client = listener.accept();
            accepted.incrementAndGet();
            Socket server;
            try {
                server = new Socket(InetAddress.getLoopbackAddress(), target);
            } catch (IOException e) {
                // the server is down
                reset(client);
                continue;
            }
            sockets.add(client);
            sockets.add(server);
            if (cut) {
                reset(client);
                reset(server);
            }
            if (closed) {
                // accepted while this was closed
                closeSockets();
            }
            Tap tap = taps.get();
            start(() -> pass(client, server, tap, true));
            start(() -> pass(server, client, tap, false));
        }
    }

    private void pass(Socket from, Socket to, Tap tap, boolean requests) throws IOException {
        try (from;
                to) {
            InputStream in = from.getInputStream();
            OutputStream out = to.getOutputStream();
            byte[] buffer = new byte[8192];
            boolean lost = false;
            for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                awaitGate(requests);
                lost |= silent && !requests;
                if (!lost) {
                    tap.passes(requests, buffer, n);
                    out.write(buffer, 0, n);
                    out.flush();
                }
            }
            awaitGate(requests);
        } finally {
            sockets.remove(from);
            sockets.remove(to);
        }
    }

    private void awaitGate(boolean requests) {
        synchronized (gate) {
            while (requests ? requestsHeld : repliesHeld) {
                try {
                    gate.wait();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                    return;
                }
            }
        }
    }

    private interface Task {
        void run() throws IOException;
    }

    private static void start(Task task) {
        Thread thread = new Thread(() -> {
            try {
                task.run();
            } catch (IOException e) {
                // one end is closed
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    public void close() throws IOException {
        closed = true;
        letGo();
        listener.close();
        closeSockets();
    }

    private void closeSockets() throws IOException {
        for (Socket socket : sockets) {
            socket.close();
        }
    }
}
