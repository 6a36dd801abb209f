package io.idempotence.server.redis;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import redis.clients.jedis.HostAndPort;

/** A server that replies to scripts as a test says: with faults that no Redis has on demand. */
final class ScriptedRedis implements AutoCloseable {
    private final ServerSocket listener;
    private final Replies replies;
    private final List<Thread> threads = new ArrayList<>();

    /** Replies to a script that is called with a key. Throws to close the connection. */
    @FunctionalInterface
    interface Replies {
        void reply(String key, OutputStream out) throws IOException;
    }

    ScriptedRedis(Replies replies) {
        this.replies = replies;
        try {
            this.listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        start(this::accept);
    }

    HostAndPort address() {
        return new HostAndPort("127.0.0.1", listener.getLocalPort());
    }

    static void write(OutputStream out, String resp) throws IOException {
        out.write(resp.getBytes(StandardCharsets.ISO_8859_1));
        out.flush();
    }

    private interface Task {
        void run() throws IOException;
    }

    private synchronized void start(Task task) {
        Thread thread = new Thread(
                () -> {
                    try {
                        task.run();
                    } catch (IOException e) {
                        // one end is closed
                    }
                },
                "scripted-redis");
        thread.setDaemon(true);
        threads.add(thread);
        thread.start();
    }

    private void accept() throws IOException {
        while (true) {
            Socket socket = listener.accept();
            socket.setTcpNoDelay(true);
            start(() -> serve(socket));
        }
    }

    private void serve(Socket socket) throws IOException {
        try (socket) {
            DataInputStream in = new DataInputStream(new BufferedInputStream(socket.getInputStream()));
            OutputStream out = socket.getOutputStream();
            for (List<String> command = read(in); !command.isEmpty(); command = read(in)) {
                switch (command.get(0)) {
                    case "EVALSHA", "EVAL" -> replies.reply(command.get(3), out);
                    case "HELLO" -> write(out, "-ERR unknown command 'HELLO'\r\n");
                    default -> write(out, "+OK\r\n");
                }
            }
        }
    }

    /** A command, or nothing at the end of the stream. */
    private static List<String> read(DataInputStream in) throws IOException {
        String count = line(in);
        List<String> command = new ArrayList<>();
        if (!count.isEmpty()) {
            for (int i = Integer.parseInt(count.substring(1)); i > 0; i--) {
                byte[] argument = new byte[Integer.parseInt(line(in).substring(1))];
                in.readFully(argument);
                line(in);
                command.add(new String(argument, StandardCharsets.ISO_8859_1));
            }
        }
        return command;
    }

    private static String line(DataInputStream in) throws IOException {
        StringBuilder line = new StringBuilder();
        for (int c = in.read(); c >= 0 && c != '\n'; c = in.read()) {
            if (c != '\r') {
                line.append((char) c);
            }
        }
        return line.toString();
    }

    /** Returns when the clients have closed their connections, and everything that they sent has arrived. */
    @Override
    public void close() throws IOException, InterruptedException {
        listener.close();
        List<Thread> started;
        synchronized (this) {
            started = List.copyOf(threads);
        }
        for (Thread thread : started) {
            thread.join();
        }
    }
}
