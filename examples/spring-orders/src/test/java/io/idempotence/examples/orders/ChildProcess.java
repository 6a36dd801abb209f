package io.idempotence.examples.orders;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A web application of Spring Boot in a process of its own, on a free port. */
public record ChildProcess(Process process, URI url, double startMillis) implements AutoCloseable {
    private static final Pattern PORT = Pattern.compile("Tomcat started on port (\\d+)");
    private static final Pattern STARTED = Pattern.compile("Started \\w+ in ([\\d.]+) seconds");

    /** What the applications of the README's quick start run on. */
    public static String quickStartClassPath() throws IOException {
        return classPath(Path.of("../quick-start"));
    }

    /** What the applications of a module run on. */
    static String classPath(Path module) throws IOException {
        return module.resolve("target/classes").toAbsolutePath()
                + File.pathSeparator
                + Files.readString(module.resolve("target/class-path.txt")).strip();
    }

    /** Starts an application and waits until it serves requests. */
    public static ChildProcess start(String classPath, String mainClass, String... args) throws Exception {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "-classpath",
                classPath,
                mainClass,
                "--server.port=0",
                "--server.address=127.0.0.1"));
        command.addAll(List.of(args));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        CompletableFuture<Integer> port = new CompletableFuture<>();
        CompletableFuture<Double> seconds = new CompletableFuture<>();
        Thread reader = new Thread(() -> read(process, port, seconds), mainClass);
        reader.setDaemon(true);
        reader.start();
        try {
            double millis = seconds.get(2, TimeUnit.MINUTES) * 1000;
            return new ChildProcess(process, URI.create("http://127.0.0.1:" + port.join()), millis);
        } catch (Exception e) {
            process.destroyForcibly();
            throw e;
        }
    }

    private static void read(Process process, CompletableFuture<Integer> port, CompletableFuture<Double> seconds) {
        StringBuilder log = new StringBuilder();
        try (BufferedReader out = process.inputReader()) {
            for (String line = out.readLine(); line != null; line = out.readLine()) {
                log.append(line).append('\n');
                Matcher opened = PORT.matcher(line);
                if (opened.find()) {
                    port.complete(Integer.parseInt(opened.group(1)));
                }
                Matcher started = STARTED.matcher(line);
                if (started.find()) {
                    seconds.complete(Double.parseDouble(started.group(1)));
                }
            }
            seconds.completeExceptionally(new IllegalStateException("the application ended:\n" + log));
        } catch (IOException e) {
            seconds.completeExceptionally(e);
        }
    }

    @Override
    public void close() {
        process.destroy();
        process.onExit().join();
    }
}
