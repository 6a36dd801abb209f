package io.idempotence.it.fault;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.request;
import static io.idempotence.it.container.Http.sendAsync;
import static org.awaitility.Awaitility.await;

import io.idempotence.OnAbandoned;
import io.idempotence.it.container.JettyServer;
import io.idempotence.it.container.ServletServer;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.IdempotencePolicy.Completion;
import io.idempotence.server.redis.EmbeddedRedis;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.storage.IdempotenceStorage;
import java.io.BufferedReader;
import java.io.EOFException;
import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;

/**
 * A provider in a process of its own, to be killed. A payment is a line in a file. With the header {@code X-Hold: before} or
 * {@code after} its handler stops before or after it has paid, and says so. With {@code after-first} it does so unless it took
 * over from another execution.
 */
public final class ProviderProcess implements AutoCloseable {
    /** Renewed soon enough although a machine pauses for two seconds. */
    static final Duration LEASE = Duration.ofSeconds(4);

    private static final String PAYMENT = "{\"amount\":5}";

    private final Process process;
    private final BufferedReader output;
    private final int port;

    private ProviderProcess(Process process) throws IOException {
        this.process = process;
        this.output = process.inputReader(StandardCharsets.UTF_8);
        this.port = Integer.parseInt(expect("port "));
    }

    public static ProviderProcess start(String redis, Path ledger, OnAbandoned onAbandoned) throws IOException {
        return start(redis, ledger, onAbandoned, Completion.BEFORE_RESPONSE);
    }

    static ProviderProcess start(String redis, Path ledger, OnAbandoned onAbandoned, Completion completion)
            throws IOException {
        return start(ProviderProcess.class, redis, ledger.toString(), onAbandoned.name(), completion.name());
    }

    /** A provider with a {@code main} of its own, which says its port and where it holds. */
    static ProviderProcess start(Class<?> main, String... args) throws IOException {
        return start(List.of(), main, args);
    }

    /** The same with options of the JVM. */
    public static ProviderProcess start(List<String> options, Class<?> main, String... args) throws IOException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        // It lives for seconds.
        command.addAll(List.of("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"));
        command.addAll(options);
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
        command.addAll(List.of(args));
        Process process = new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .directory(new File("target"))
                .start();
        try {
            return new ProviderProcess(process);
        } catch (IOException | RuntimeException e) {
            process.destroyForcibly();
            throw e;
        }
    }

    public URI uri(String path) {
        return URI.create("http://127.0.0.1:" + port + path);
    }

    /** An attempt to pay. */
    HttpResponse<byte[]> pay(String id) {
        return post(uri("/payments"), id, PAYMENT);
    }

    /** Attempts until none is under way any more. */
    HttpResponse<byte[]> payWhenNotInProgress(String id) {
        AtomicReference<HttpResponse<byte[]>> response = new AtomicReference<>();
        await().until(() -> {
            response.set(pay(id));
            return !"in-progress".equals(refusal(response.get()));
        });
        return response.get();
    }

    /** An attempt that has come to where it holds. */
    CompletableFuture<HttpResponse<byte[]>> payAndHold(String id, String where) throws IOException {
        CompletableFuture<HttpResponse<byte[]>> response =
                sendAsync(request("POST", uri("/payments"), id, PAYMENT, "X-Hold", where));
        awaitHold();
        return response;
    }

    public void awaitHold() throws IOException {
        expect("hold");
    }

    /** SIGKILL */
    public void kill() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    /** SIGSTOP */
    public void pause() throws IOException, InterruptedException {
        signal("STOP");
    }

    /** SIGCONT: a process that was held goes on. */
    public void resume() throws IOException, InterruptedException {
        signal("CONT");
        process.outputWriter(StandardCharsets.UTF_8).append('\n').flush();
    }

    private void signal(String name) throws IOException, InterruptedException {
        int exit = new ProcessBuilder("kill", "-" + name, Long.toString(process.pid()))
                .start()
                .waitFor();
        if (exit != 0) {
            throw new IllegalStateException("kill -" + name + " ended with " + exit);
        }
    }

    String expect(String prefix) throws IOException {
        for (String line = output.readLine(); line != null; line = output.readLine()) {
            if (line.startsWith(prefix)) {
                return line.substring(prefix.length());
            }
        }
        throw new IllegalStateException("the provider ended before it said '" + prefix + "'");
    }

    @Override
    public void close() throws InterruptedException, IOException {
        kill();
        output.close();
    }

    public static void main(String[] args) {
        IdempotencePolicy policy =
                policy(args[2]).completion(Completion.valueOf(args[3])).build();
        serve(EmbeddedRedis.connect(args[0]), args[1], policy);
    }

    static IdempotencePolicy.Builder policy(String onAbandoned) {
        return IdempotencePolicy.builder().lease(LEASE).onAbandoned(OnAbandoned.valueOf(onAbandoned));
    }

    static void serve(IdempotenceStorage storage, String paid, IdempotencePolicy policy) {
        Idempotence idempotence = Idempotence.builder(storage).policy(policy).build();
        Path ledger = Path.of(paid);
        ServletServer server = JettyServer.start(
                context -> {
                    IdempotenceFilter.install(context, idempotence, "/payments");
                    context.addServlet("payments", ServletServer.servlet((request, response) -> {
                                boolean takenOver = IdempotenceFilter.execution(request)
                                        .orElseThrow()
                                        .takenOver();
                                hold(request.getHeader("X-Hold"), List.of("before"));
                                if (!takenOver || Files.size(ledger) == 0) {
                                    Files.writeString(
                                            ledger, "paid\n", StandardOpenOption.APPEND, StandardOpenOption.SYNC);
                                }
                                hold(
                                        request.getHeader("X-Hold"),
                                        takenOver ? List.of("after") : List.of("after", "after-first"));
                                response.setStatus(201);
                                response.getOutputStream().print(takenOver ? "paid, taken over" : "paid");
                            }))
                            .addMapping("/payments");
                },
                null);
        say("port " + server.port());
    }

    /** Says so and stops here, until {@link #resume()}, if that was asked for. */
    static void hold(String asked, List<String> here) throws IOException {
        if (asked != null && here.contains(asked)) {
            say("hold");
            if (System.in.read() < 0) {
                throw new EOFException("the test is gone");
            }
        }
    }

    static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
