package io.idempotence.it.chaos;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** A TCP connection between two places. Cut, it resets open connections and new ones; silent, it loses what comes back. */
final class TcpLink implements AutoCloseable {
    private final ServerSocket listener;
    private final int target;
    private final Set<Socket> open = ConcurrentHashMap.newKeySet();
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private volatile boolean cut;
    private volatile boolean silent;

    private TcpLink(ServerSocket listener, int target) {
        this.listener = listener;
        this.target = target;
        threads.execute(this::accept);
    }

    static TcpLink to(int target) {
        try {
            return new TcpLink(new ServerSocket(0, 200, InetAddress.getLoopbackAddress()), target);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    String address() {
        return "127.0.0.1:" + listener.getLocalPort();
    }

    void cut() {
        cut = true;
        open.forEach(TcpLink::reset);
    }

    /** From now on what is sent arrives, and what comes back is lost. */
    void silence() {
        silent = true;
    }

    void repair() {
        silent = false;
        cut = false;
        open.forEach(TcpLink::reset);
    }

    private void accept() {
        while (!listener.isClosed()) {
            try {
                Socket near = listener.accept();
                open.add(near);
                threads.execute(() -> connect(near));
            } catch (IOException e) {
                // closed
            }
        }
    }

    private void connect(Socket near) {
        if (cut) {
            end(near);
            return;
        }
        try {
            Socket far = new Socket(InetAddress.getLoopbackAddress(), target);
            open.add(far);
            if (cut) {
                end(far);
            }
            threads.execute(() -> pass(far, near, true));
            pass(near, far, false);
        } catch (IOException e) {
            end(near);
        }
    }

    private void pass(Socket from, Socket to, boolean back) {
        try {
            InputStream in = from.getInputStream();
            OutputStream out = to.getOutputStream();
            byte[] buffer = new byte[8192];
            // After a gap nothing may follow.
            boolean lost = false;
            for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                lost |= back && silent;
                if (!lost) {
                    out.write(buffer, 0, n);
                }
            }
        } catch (IOException e) {
            // cut, or one of the two is gone
        } finally {
            end(from);
            end(to);
        }
    }

    private void end(Socket socket) {
        open.remove(socket);
        reset(socket);
    }

    private static void reset(Socket socket) {
        try {
            socket.setSoLinger(true, 0);
            socket.close();
        } catch (IOException e) {
            // closed already
        }
    }

    @Override
    public void close() throws IOException {
        listener.close();
        cut();
        threads.shutdownNow();
    }
}
