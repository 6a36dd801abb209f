package io.idempotence.it.behaviour;

import io.idempotence.ClosedPort;
import io.idempotence.it.wire.RawRequest;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * A server that plays a {@link Behaviour} at two origins of this machine, and records every request. One server serves the run without the
 * client half and the run with it, one after the other, so that addresses are the same in both; {@link #takeRequests} ends a run.
 */
public final class BehaviourServer implements AutoCloseable {
    private final Behaviour behaviour;
    private final ServerSocket here;
    private final ServerSocket elsewhere;
    private final Set<Socket> open = ConcurrentHashMap.newKeySet();
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final List<String> requests = new ArrayList<>();

    private BehaviourServer(Behaviour behaviour) throws IOException {
        this.behaviour = behaviour;
        this.here = listener();
        this.elsewhere = listener();
        threads.execute(() -> accept(here));
        threads.execute(() -> accept(elsewhere));
    }

    public static BehaviourServer start(Behaviour behaviour) {
        try {
            return new BehaviourServer(behaviour);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Where the calls go. */
    public String url() {
        return (behaviour.listens() ? origin() : nobody()) + "/start";
    }

    /** What arrived since the last time, in order: request line, all headers and the body, each as one text. */
    public List<String> takeRequests() {
        synchronized (requests) {
            List<String> taken = List.copyOf(requests);
            requests.clear();
            return taken;
        }
    }

    String origin() {
        return origin(here);
    }

    String otherOrigin() {
        return origin(elsewhere);
    }

    String nobody() {
        return ClosedPort.url();
    }

    private static ServerSocket listener() throws IOException {
        return new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    }

    private static String origin(ServerSocket listener) {
        return "http://127.0.0.1:" + listener.getLocalPort();
    }

    private void accept(ServerSocket listener) {
        while (!listener.isClosed()) {
            try {
                Socket client = listener.accept();
                open.add(client);
                if (listener.isClosed()) {
                    // The others were closed before this one was there.
                    client.close();
                }
                threads.execute(() -> serve(client));
            } catch (IOException e) {
                // closed
            }
        }
    }

    private void serve(Socket client) {
        try (client) {
            Turn turn;
            do {
                RawRequest request = readHead(client.getInputStream());
                if (request == null) {
                    return;
                }
                byte[] body = behaviour.server().readsBody() ? readBody(request, client.getInputStream()) : new byte[0];
                turn = new Turn(this, client, note(request.head(), body), request);
                behaviour.server().respond(turn);
            } while (!turn.isClosed());
        } catch (IOException e) {
            // the client went away
        } finally {
            open.remove(client);
        }
    }

    private int note(String head, byte[] body) {
        synchronized (requests) {
            String text = Endings.of(new String(body, StandardCharsets.UTF_8));
            requests.add(head + text);
            return requests.size();
        }
    }

    private static RawRequest readHead(InputStream in) throws IOException {
        StringBuilder head = new StringBuilder();
        while (head.length() < 4 || !head.substring(head.length() - 4).equals("\r\n\r\n")) {
            int next = in.read();
            if (next < 0) {
                return null;
            }
            head.append((char) next);
        }
        return new RawRequest(head.toString(), new byte[0]);
    }

    /** The body of a request whose head was read: by its length, or by its chunks. */
    public static byte[] readBody(RawRequest request, InputStream in) throws IOException {
        String length = request.header("Content-Length");
        if (length != null) {
            return whole(in, Integer.parseInt(length));
        }
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        if (request.header("Transfer-Encoding") != null) {
            for (int size = chunkSize(in); size > 0; size = chunkSize(in)) {
                body.write(whole(in, size));
                whole(in, 2);
            }
            whole(in, 2);
        }
        return body.toByteArray();
    }

    private static int chunkSize(InputStream in) throws IOException {
        StringBuilder line = new StringBuilder();
        for (int next = in.read(); next != '\n'; next = in.read()) {
            if (next < 0) {
                throw new EOFException("the request was interrupted");
            }
            line.append((char) next);
        }
        return Integer.parseInt(line.toString().trim(), 16);
    }

    private static byte[] whole(InputStream in, int length) throws IOException {
        byte[] bytes = in.readNBytes(length);
        if (bytes.length < length) {
            throw new EOFException("the request was interrupted");
        }
        return bytes;
    }

    @Override
    public void close() {
        try {
            here.close();
            elsewhere.close();
            for (Socket socket : open) {
                socket.close();
            }
            threads.shutdownNow();
            if (!threads.awaitTermination(60, TimeUnit.SECONDS)) {
                throw new IllegalStateException("a connection of the behaviour server does not end");
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
