package io.idempotence.server.redis.internal.jedis;

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
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import redis.clients.jedis.HostAndPort;

/** A server whose replies the test chooses, for faults that no real Redis produces on demand. */
public final class ScriptedRedis implements AutoCloseable {
    private final ServerSocket listener;
    private final Replies replies;
    private final List<Thread> threads = new ArrayList<>();
    private final Queue<Command> received = new ConcurrentLinkedQueue<>();
    private final AtomicInteger accepted = new AtomicInteger();
    private final Map<Integer, OutputStream> open = new ConcurrentHashMap<>();

    /**
     * A command that records are kept with.
     *
     * @param connection the number of its connection, counted from 1
     * @param key the key of a script, the text of a {@code ECHO}, empty for another command
     */
    public record Command(int connection, String name, String key) {
        private static Command of(int connection, List<String> words) {
            String name = words.get(0);
            String key = switch (name) {
                case "EVALSHA", "EVAL" -> words.get(3);
                case "ECHO" -> words.get(1);
                default -> "";
            };
            return new Command(connection, name, key);
        }

        boolean isScript() {
            return name.startsWith("EVAL");
        }

        @Override
        public String toString() {
            return isScript() ? name + " " + key : name;
        }
    }

    /** Replies to a command. Throws to close the connection. */
    @FunctionalInterface
    public interface Replies {
        void reply(Command command, OutputStream out) throws IOException;
    }

    public ScriptedRedis(Replies replies) {
        this.replies = replies;
        try {
            this.listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        start(this::accept);
    }

    public HostAndPort address() {
        return new HostAndPort("127.0.0.1", listener.getLocalPort());
    }

    /** What has arrived so far in the order of its arrival, without {@code ECHO} and what the driver sends by itself. */
    public List<Command> received() {
        return List.copyOf(received);
    }

    /** How many connections were accepted so far. */
    public int connections() {
        return accepted.get();
    }

    /** The number of every connection that is open. */
    Set<Integer> open() {
        return Set.copyOf(open.keySet());
    }

    /** Sends a reply to no command on every open connection. */
    void sendUnasked(String resp) throws IOException {
        for (OutputStream connection : open.values()) {
            write(connection, resp);
        }
    }

    /** The usual reply to a command: to a script like {@code find.lua} the key as the record, which has no time to live. */
    public static String usual(Command command) {
        return switch (command.name()) {
            case "EVALSHA", "EVAL" -> "*2\r\n" + bulk(command.key()) + ":-2\r\n";
            case "ECHO" -> bulk(command.key());
            case "WAIT" -> ":1\r\n";
            default -> "+OK\r\n";
        };
    }

    private static String bulk(String text) {
        return "$" + text.length() + "\r\n" + text + "\r\n";
    }

    public static void write(OutputStream out, String resp) throws IOException {
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
            int connection = accepted.incrementAndGet();
            open.put(connection, socket.getOutputStream());
            start(() -> serve(socket, connection));
        }
    }

    private void serve(Socket socket, int connection) throws IOException {
        try (socket) {
            DataInputStream in = new DataInputStream(new BufferedInputStream(socket.getInputStream()));
            OutputStream out = socket.getOutputStream();
            for (List<String> words = read(in); !words.isEmpty(); words = read(in)) {
                Command command = Command.of(connection, words);
                switch (command.name()) {
                    case "EVALSHA", "EVAL", "WAIT", "ASKING" -> {
                        received.add(command);
                        replies.reply(command, out);
                    }
                    case "ECHO", "CLUSTER" -> replies.reply(command, out);
                    case "HELLO" -> write(out, "-ERR unknown command 'HELLO'\r\n");
                    default -> write(out, "+OK\r\n");
                }
            }
        } finally {
            open.remove(connection);
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
