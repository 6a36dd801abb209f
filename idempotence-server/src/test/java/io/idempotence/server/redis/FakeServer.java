package io.idempotence.server.redis;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.UnaryOperator;

/** A server that speaks the protocol of Redis as no Redis does. It counts its connections. */
final class FakeServer implements AutoCloseable {
    private final ServerSocket socket = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    private final List<Socket> connections = new CopyOnWriteArrayList<>();
    private final UnaryOperator<String> replies;

    /** @param replies the bytes of the reply to a command, by its name; empty for none */
    FakeServer(UnaryOperator<String> replies) throws IOException {
        this.replies = replies;
        start(this::accept);
    }

    private static void start(Runnable work) {
        Thread thread = new Thread(work, "fake-server");
        thread.setDaemon(true);
        thread.start();
    }

    private void accept() {
        try {
            while (true) {
                Socket connection = socket.accept();
                connections.add(connection);
                start(() -> serve(connection));
            }
        } catch (IOException closed) {
            // the end of the test
        }
    }

    private void serve(Socket connection) {
        try (connection) {
            BufferedReader in =
                    new BufferedReader(new InputStreamReader(connection.getInputStream(), StandardCharsets.UTF_8));
            for (String count = in.readLine(); count != null; count = in.readLine()) {
                String name = "";
                for (int i = Integer.parseInt(count.substring(1)); i > 0; i--) {
                    in.readLine();
                    String part = in.readLine();
                    name = name.isEmpty() ? part : name;
                }
                String reply = replies.apply(name.toUpperCase(Locale.ROOT));
                connection.getOutputStream().write(reply.getBytes(StandardCharsets.UTF_8));
            }
        } catch (IOException closed) {
            // by the client, or at the end of the test
        }
    }

    /** Those so far. */
    int connections() {
        return connections.size();
    }

    String address() {
        return "127.0.0.1:" + socket.getLocalPort();
    }

    @Override
    public void close() throws IOException {
        socket.close();
        for (Socket connection : connections) {
            connection.close();
        }
    }
}
