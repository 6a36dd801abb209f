package io.idempotence.examples.job;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A network to the provider that holds the requests about one order, or their responses, until the test lets everything pass. */
final class HoldingNetwork implements AutoCloseable {
    private static final Pattern ORDER = Pattern.compile("\"order\"\\s*:\\s*(\\d+)");
    private static final List<String> CARRIED =
            List.of("Content-Type", "Idempotency-Key", "Idempotency-Attempt", "Idempotent-Replayed");

    private final int heldOrder;
    private final Where where;
    private final URI provider;
    private final HttpServer entrance;
    private final HttpClient client = HttpClient.newHttpClient();
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final CompletableFuture<Boolean> holds = new CompletableFuture<>();
    private final CountDownLatch over = new CountDownLatch(1);
    private final Map<Integer, Set<String>> ids = new ConcurrentHashMap<>();

    enum Where {
        /** The provider does not see the request: it pays nothing. */
        REQUEST,
        /** The provider has paid; the consumer does not see the response. */
        RESPONSE
    }

    HoldingNetwork(int heldOrder, Where where, int providerPort) throws IOException {
        this.heldOrder = heldOrder;
        this.where = where;
        this.provider = URI.create("http://127.0.0.1:" + providerPort);
        entrance = HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0), 0);
        entrance.setExecutor(threads);
        entrance.createContext("/", this::carry);
        entrance.start();
    }

    String url() {
        return "http://127.0.0.1:" + entrance.getAddress().getPort();
    }

    /** Done as soon as something is held. */
    CompletableFuture<Boolean> holds() {
        return holds;
    }

    /** From now on everything passes; what was held is dropped. */
    void letPass() {
        over.countDown();
    }

    /** The IDs under which requests about an order came in. */
    Set<String> ids(int order) {
        return ids.getOrDefault(order, Set.of());
    }

    private void carry(HttpExchange exchange) throws IOException {
        try (exchange) {
            byte[] body = exchange.getRequestBody().readAllBytes();
            Matcher matcher = ORDER.matcher(new String(body, StandardCharsets.UTF_8));
            int order = matcher.find() ? Integer.parseInt(matcher.group(1)) : 0;
            ids.computeIfAbsent(order, any -> ConcurrentHashMap.newKeySet())
                    .add(exchange.getRequestHeaders().getFirst("Idempotency-Key"));
            boolean held = order == heldOrder && over.getCount() > 0;
            if (held && where == Where.REQUEST) {
                hold();
                return;
            }
            HttpResponse<byte[]> response = send(exchange, body);
            if (held) {
                hold();
                return;
            }
            CARRIED.forEach(name -> response.headers()
                    .firstValue(name)
                    .ifPresent(value -> exchange.getResponseHeaders().set(name, value)));
            exchange.sendResponseHeaders(response.statusCode(), response.body().length);
            exchange.getResponseBody().write(response.body());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private HttpResponse<byte[]> send(HttpExchange exchange, byte[] body) throws IOException, InterruptedException {
        HttpRequest.Builder request = HttpRequest.newBuilder(provider.resolve(exchange.getRequestURI()))
                .POST(HttpRequest.BodyPublishers.ofByteArray(body));
        CARRIED.forEach(name -> {
            String value = exchange.getRequestHeaders().getFirst(name);
            if (value != null) {
                request.header(name, value);
            }
        });
        return client.send(request.build(), HttpResponse.BodyHandlers.ofByteArray());
    }

    private void hold() throws InterruptedException {
        holds.complete(true);
        over.await();
    }

    @Override
    public void close() {
        letPass();
        entrance.stop(0);
        threads.shutdownNow();
    }
}
