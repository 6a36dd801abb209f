package io.idempotence.examples.payments.network;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.idempotence.examples.payments.provider.PaymentProvider;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A network that carries each request to one of the providers with the fault of a {@link FaultPlan}. Attempts at an order go to the
 * providers in turn, so that a retry meets the other instance.
 *
 * <p>It speaks as much HTTP/1.1 as the demo needs: one request per connection, a body with a {@code Content-Length}. Thread-safe.
 */
public final class LossyNetwork implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(LossyNetwork.class);
    private static final int PATIENCE_MILLIS = 10_000;
    private static final int MAX_REQUEST = 1 << 16;

    private final FaultPlan plan;
    private final Duration readTimeout;
    private final List<Integer> providerPorts;
    private final ServerSocket entrance;
    private final ObjectMapper json = new ObjectMapper();
    private final Map<Integer, Integer> attemptsByOrder = new ConcurrentHashMap<>();
    private final AtomicInteger requests = new AtomicInteger();
    private final AtomicIntegerArray forwarded;
    private final ExecutorService threads = Executors.newCachedThreadPool(task -> {
        Thread thread = new Thread(task, "network");
        thread.setDaemon(true);
        return thread;
    });

    private LossyNetwork(FaultPlan plan, Duration readTimeout, List<Integer> providerPorts) throws IOException {
        this.plan = plan;
        this.readTimeout = readTimeout;
        this.providerPorts = List.copyOf(providerPorts);
        this.forwarded = new AtomicIntegerArray(providerPorts.size());
        this.entrance = new ServerSocket(0, 256, InetAddress.getLoopbackAddress());
    }

    /**
     * Opens a network.
     *
     * @param plan what goes wrong
     * @param readTimeout of the consumer; late responses and slow handlers are made to exceed it
     * @param providerPorts where the providers listen on 127.0.0.1
     * @return the network, open
     */
    public static LossyNetwork open(FaultPlan plan, Duration readTimeout, List<Integer> providerPorts) {
        try {
            LossyNetwork network = new LossyNetwork(plan, readTimeout, providerPorts);
            network.threads.execute(network::acceptAll);
            return network;
        } catch (IOException e) {
            throw new UncheckedIOException("the network found no free port", e);
        }
    }

    /**
     * Where consumers connect.
     *
     * @return an HTTP URL
     */
    public String url() {
        return "http://127.0.0.1:" + entrance.getLocalPort();
    }

    /**
     * How many HTTP requests came in.
     *
     * @return a running count
     */
    public int requests() {
        return requests.get();
    }

    /**
     * How many requests were handed to a provider.
     *
     * @param provider its place in the list of ports
     * @return a running count
     */
    public int forwarded(int provider) {
        return forwarded.get(provider);
    }

    /** Takes no new request and returns when the last one is through. */
    @Override
    public void close() {
        try {
            entrance.close();
            threads.shutdown();
            if (!threads.awaitTermination(2L * PATIENCE_MILLIS, TimeUnit.MILLISECONDS)) {
                throw new IllegalStateException("a request is stuck in the network");
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            threads.shutdownNow();
            Thread.currentThread().interrupt();
        }
    }

    private void acceptAll() {
        while (!entrance.isClosed()) {
            try {
                Socket consumer = entrance.accept();
                threads.execute(() -> carry(consumer));
            } catch (IOException e) {
                if (!entrance.isClosed()) {
                    LOG.error("the network broke down", e);
                }
            }
        }
    }

    private void carry(Socket consumer) {
        try (consumer) {
            consumer.setSoTimeout(PATIENCE_MILLIS);
            carry(HttpRequest.read(consumer.getInputStream()), consumer);
        } catch (IOException e) {
            LOG.debug("the consumer is gone", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void carry(HttpRequest request, Socket consumer) throws IOException, InterruptedException {
        requests.incrementAndGet();
        int order = json.readTree(request.body).path("order").asInt();
        int attempt = attemptsByOrder.merge(order, 1, Integer::sum);
        int provider = (order + attempt) % providerPorts.size();
        switch (plan.fault(order, attempt)) {
            case NONE -> give(consumer, exchange(provider, request, Duration.ZERO));
            case RESPONSE_LOST -> {
                exchange(provider, request, Duration.ZERO);
                reset(consumer);
            }
            case RESPONSE_LATE -> {
                byte[] response = exchange(provider, request, Duration.ZERO);
                Thread.sleep(readTimeout.multipliedBy(3).dividedBy(2).toMillis());
                give(consumer, response);
            }
            case RESET_BEFORE -> reset(consumer);
            case RESET_AFTER -> {
                // Closed in the ordinary way towards the provider:
                // it has the whole request, but nobody waits for the response.
                try (Socket connection = connect(provider)) {
                    send(connection, provider, request, Duration.ZERO);
                }
                reset(consumer);
            }
            case SLOW_HANDLER -> give(consumer, exchange(provider, request, readTimeout.multipliedBy(3)));
        }
    }

    private byte[] exchange(int provider, HttpRequest request, Duration slowHandler) throws IOException {
        try (Socket connection = connect(provider)) {
            send(connection, provider, request, slowHandler);
            return connection.getInputStream().readAllBytes();
        }
    }

    private Socket connect(int provider) throws IOException {
        Socket connection = new Socket();
        connection.setSoTimeout(PATIENCE_MILLIS);
        connection.connect(
                new InetSocketAddress(InetAddress.getLoopbackAddress(), providerPorts.get(provider)), PATIENCE_MILLIS);
        return connection;
    }

    private void send(Socket connection, int provider, HttpRequest request, Duration slowHandler) throws IOException {
        OutputStream out = connection.getOutputStream();
        out.write(request.toBytes(slowHandler));
        out.flush();
        forwarded.incrementAndGet(provider);
    }

    private static void give(Socket consumer, byte[] response) throws IOException {
        consumer.getOutputStream().write(response);
    }

    private static void reset(Socket consumer) throws IOException {
        // With linger 0 close sends RST instead of FIN.
        consumer.setSoLinger(true, 0);
        consumer.close();
    }

    /** A request as it came over the wire, its head without the blank line at the end. */
    private static final class HttpRequest {
        private static final String END_OF_LINE = "\r\n";

        private final String head;
        private final byte[] body;

        private HttpRequest(String head, byte[] body) {
            this.head = head;
            this.body = body;
        }

        static HttpRequest read(InputStream in) throws IOException {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            int matched = 0;
            while (matched < 4) {
                int next = in.read();
                if (next < 0 || bytes.size() == MAX_REQUEST) {
                    throw new EOFException("no whole request");
                }
                bytes.write(next);
                matched = next == (matched % 2 == 0 ? '\r' : '\n') ? matched + 1 : 0;
            }
            String head = bytes.toString(StandardCharsets.ISO_8859_1).strip();
            int length = head.lines()
                    .filter(line -> line.toLowerCase(Locale.ROOT).startsWith("content-length:"))
                    .mapToInt(line -> Integer.parseInt(
                            line.substring(line.indexOf(':') + 1).strip()))
                    .findFirst()
                    .orElse(0);
            byte[] body = in.readNBytes(length);
            if (body.length < length) {
                throw new EOFException("no whole body");
            }
            return new HttpRequest(head, body);
        }

        byte[] toBytes(Duration slowHandler) throws IOException {
            StringBuilder text = new StringBuilder();
            head.lines()
                    .filter(line -> !line.toLowerCase(Locale.ROOT).startsWith("connection:"))
                    .forEach(line -> text.append(line).append(END_OF_LINE));
            text.append("Connection: close").append(END_OF_LINE);
            if (!slowHandler.isZero()) {
                text.append(PaymentProvider.SLOW_HANDLER_HEADER)
                        .append(": ")
                        .append(slowHandler.toMillis())
                        .append(END_OF_LINE);
            }
            text.append(END_OF_LINE);
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            bytes.write(text.toString().getBytes(StandardCharsets.ISO_8859_1));
            bytes.write(body);
            return bytes.toByteArray();
        }
    }
}
