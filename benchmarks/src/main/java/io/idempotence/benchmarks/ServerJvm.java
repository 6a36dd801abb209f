package io.idempotence.benchmarks;

import io.idempotence.benchmarks.ServerVariant.Surroundings;
import jakarta.servlet.ServletContext;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import redis.clients.jedis.HostAndPort;

/**
 * The JVM that serves, apart from the one that calls, so that its processor time and allocations are those of the server alone.
 *
 * <p>It prints its port, then its usage for each line that it reads, and ends with its standard input.
 */
final class ServerJvm implements AutoCloseable {
    /**
     * A variant at a path of its own.
     *
     * @param path of the application, and the name of the variant in a round
     * @param variant what serves it
     * @param redis where its Redis is
     */
    record Application(String path, ServerVariant variant, HostAndPort redis) {
        private static Application parse(String argument) {
            String[] parts = argument.split(",", 3);
            return new Application(parts[0], ServerVariant.valueOf(parts[1]), HostAndPort.from(parts[2]));
        }

        private String argument() {
            return path + "," + variant + "," + redis;
        }
    }

    private static final String REPLY = "reply: ";
    private static final int END_SECONDS = 60;

    private final Process process;
    private final PrintWriter requests;
    private final BufferedReader replies;
    private final int port;

    private ServerJvm(Process process) throws IOException {
        this.process = process;
        this.requests = new PrintWriter(process.getOutputStream(), true, StandardCharsets.UTF_8);
        this.replies = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
        this.port = Integer.parseInt(reply());
    }

    /**
     * Starts it.
     *
     * @param jvmOptions additional ones, to record a profile for example
     * @param jdbcUrl of PostgreSQL, or empty
     */
    static ServerJvm start(List<String> jvmOptions, String jdbcUrl, List<Application> applications) throws IOException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of("-Xms1g", "-Xmx1g"));
        command.addAll(jvmOptions);
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), ServerJvm.class.getName(), jdbcUrl));
        applications.forEach(application -> command.add(application.argument()));
        return new ServerJvm(new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start());
    }

    int port() {
        return port;
    }

    Usage usage() {
        try {
            requests.println("usage");
            String[] parts = reply().split(" ", 2);
            return new Usage(Long.parseLong(parts[0]), Long.parseLong(parts[1]), 0);
        } catch (IOException e) {
            throw new UncheckedIOException("the server's JVM did not report its usage", e);
        }
    }

    /** The next reply. Other lines are messages of the JVM itself. */
    private String reply() throws IOException {
        for (String line = replies.readLine(); line != null; line = replies.readLine()) {
            if (line.startsWith(REPLY)) {
                return line.substring(REPLY.length());
            }
            System.err.println(line);
        }
        throw new IOException("the server's JVM ended; its messages are above");
    }

    @Override
    public void close() throws IOException {
        requests.close();
        try {
            if (!process.waitFor(END_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }

    /**
     * Serves until standard input ends.
     *
     * @param args the URL of PostgreSQL or an empty text, then the applications
     */
    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        try (Resources resources = new Resources();
                BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            Map<String, Consumer<ServletContext>> applications = new LinkedHashMap<>();
            for (String argument : List.of(args).subList(1, args.length)) {
                Application application = Application.parse(argument);
                applications.put(
                        application.path,
                        application.variant.application(new Surroundings(application.redis, args[0], resources)));
            }
            PaymentServer server = resources.add(PaymentServer.start(applications));
            out.println(REPLY + server.port());
            while (in.readLine() != null) {
                Usage usage = Usage.ofThisJvm();
                out.println(REPLY + usage.cpuNanos() + " " + usage.allocatedBytes());
            }
        }
        System.exit(0);
    }
}
