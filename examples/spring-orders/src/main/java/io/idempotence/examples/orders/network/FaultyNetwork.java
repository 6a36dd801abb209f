package io.idempotence.examples.orders.network;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;

/** A reverse proxy between the shop and the payment service that breaks requests on demand. Thread-safe. */
public final class FaultyNetwork implements AutoCloseable {
    /** Asks the payment service to fail after its commit. A real provider has no such header. */
    public static final String FAIL_AFTER_COMMIT = "X-Example-Fail-After-Commit";

    private static final Duration DELAY = Duration.ofSeconds(3);
    /** What the proxy's own client sets. */
    private static final Set<String> NOT_FORWARDED =
            Set.of("connection", "content-length", "host", "upgrade", "http2-settings", "transfer-encoding");

    private final URI provider;
    private final HttpServer entrance;
    private final ExecutorService threads = Executors.newCachedThreadPool(task -> new Thread(task, "network"));
    private final HttpClient client =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final AtomicReference<Fault> next = new AtomicReference<>(Fault.NONE);
    private final AtomicInteger requests = new AtomicInteger();

    private FaultyNetwork(URI provider, HttpServer entrance) {
        this.provider = provider;
        this.entrance = entrance;
    }

    /**
     * Opens the network on a free port.
     *
     * @param provider where requests go
     */
    public static FaultyNetwork open(URI provider) throws IOException {
        HttpServer entrance = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        FaultyNetwork network = new FaultyNetwork(provider, entrance);
        entrance.setExecutor(network.threads);
        entrance.createContext("/", network::carry);
        entrance.start();
        return network;
    }

    public URI url() {
        return URI.create("http://localhost:" + entrance.getAddress().getPort());
    }

    /** Breaks the next payment request; {@link Fault#LOSE_ALL_RESPONSES} breaks all until another fault is chosen. */
    public void breakNext(Fault fault) {
        next.set(fault);
    }

    public Fault next() {
        return next.get();
    }

    /** How many requests the shop has sent. */
    public int requests() {
        return requests.get();
    }

    private void carry(HttpExchange exchange) throws IOException {
        try (exchange) {
            byte[] body = exchange.getRequestBody().readAllBytes();
            if (!"POST".equals(exchange.getRequestMethod())) {
                give(exchange, send(exchange, body, false));
                return;
            }
            requests.incrementAndGet();
            Fault fault = next.getAndUpdate(now -> now.staysOn() ? now : Fault.NONE);
            if (fault == Fault.LOSE_REQUEST) {
                return; // closing an exchange without a response closes its connection
            }
            HttpResponse<byte[]> response = send(exchange, body, fault == Fault.FAIL_AFTER_COMMIT);
            if (fault == Fault.LOSE_RESPONSE || fault == Fault.LOSE_ALL_RESPONSES) {
                return;
            }
            if (fault == Fault.DELAY_RESPONSE) {
                Thread.sleep(DELAY.toMillis());
            }
            give(exchange, response);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // the example ends
        }
    }

    private HttpResponse<byte[]> send(HttpExchange exchange, byte[] body, boolean failAfterCommit)
            throws IOException, InterruptedException {
        HttpRequest.Builder request = HttpRequest.newBuilder(provider.resolve(exchange.getRequestURI()))
                .method(exchange.getRequestMethod(), HttpRequest.BodyPublishers.ofByteArray(body));
        exchange.getRequestHeaders().forEach((name, values) -> {
            if (!NOT_FORWARDED.contains(name.toLowerCase(Locale.ROOT))) {
                values.forEach(value -> request.header(name, value));
            }
        });
        if (failAfterCommit) {
            request.header(FAIL_AFTER_COMMIT, "true");
        }
        return client.send(request.build(), HttpResponse.BodyHandlers.ofByteArray());
    }

    private static void give(HttpExchange exchange, HttpResponse<byte[]> response) throws IOException {
        response.headers().map().forEach((name, values) -> {
            if (!NOT_FORWARDED.contains(name)) {
                exchange.getResponseHeaders().put(name, values);
            }
        });
        exchange.sendResponseHeaders(response.statusCode(), response.body().length == 0 ? -1 : response.body().length);
        try (OutputStream out = exchange.getResponseBody()) {
            out.write(response.body());
        }
    }

    /** Breaks what is in flight. */
    @Override
    public void close() {
        threads.shutdownNow();
        entrance.stop(0);
    }
}
