package io.idempotence.it.wire;

import java.io.IOException;
import java.net.ConnectException;
import java.net.Socket;
import java.net.URI;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A proxy between a client and the instances of a provider. It hands the requests with an ID to the instances in turn, passes over
 * instances that are down, and injects into each request the fault of its plan.
 */
public final class FaultyProxy implements AutoCloseable {
    private final List<URI> instances;
    private final Plan plan;
    private final RawServer server;
    private final Map<String, AtomicInteger> requestsOfId = new ConcurrentHashMap<>();
    private final List<RawRequest> requests = new CopyOnWriteArrayList<>();
    private final List<String> statusLines = new CopyOnWriteArrayList<>();

    /** The fault of a request. */
    public enum Fault {
        NONE,
        /** The connection is reset, and no instance sees the request. */
        RESET_BEFORE_FORWARDING,
        /** An instance has the request, and the connection is reset while it works. */
        RESET_AFTER_FORWARDING,
        /** An instance responded, and the connection is reset instead. */
        RESPONSE_LOST,
        /** An instance responded, and the response comes after the client gave up waiting. */
        RESPONSE_LATE
    }

    /** The choice of a fault for each request. */
    @FunctionalInterface
    public interface Plan {
        /** @param n 1 for the first request with this ID, 2 for the second */
        Fault of(RawRequest request, int n);
    }

    private FaultyProxy(List<URI> instances, Plan plan) {
        this.instances = List.copyOf(instances);
        this.plan = plan;
        this.server = RawServer.start(this::handle);
    }

    public static FaultyProxy start(Plan plan, URI... instances) {
        return new FaultyProxy(List.of(instances), plan);
    }

    public String url() {
        return server.url();
    }

    /** Everything that came in, in order of arrival. */
    public List<RawRequest> requests() {
        return requests;
    }

    /** The status lines of what the instances sent, whether or not the client saw them. */
    public List<String> statusLines() {
        return statusLines;
    }

    private void handle(RawRequest request, Socket client) throws IOException {
        requests.add(request);
        int n = requestsOfId
                .computeIfAbsent(String.valueOf(request.header("Idempotency-Key")), id -> new AtomicInteger())
                .incrementAndGet();
        Fault fault = plan.of(request, n);
        if (fault == Fault.RESET_BEFORE_FORWARDING) {
            RawServer.reset(client);
            return;
        }
        try (Socket instance = connect(n)) {
            instance.getOutputStream().write(request.forLastOfConnection());
            instance.getOutputStream().flush();
            if (fault == Fault.RESET_AFTER_FORWARDING) {
                RawServer.reset(client);
            }
            byte[] response = instance.getInputStream().readAllBytes();
            statusLines.add(statusLine(response));
            pass(fault, response, client);
        }
    }

    private static void pass(Fault fault, byte[] response, Socket client) throws IOException {
        switch (fault) {
            case RESPONSE_LOST -> RawServer.reset(client);
            // The client's end of the connection ends when its read timeout is over.
            case RESPONSE_LATE -> client.getInputStream().transferTo(java.io.OutputStream.nullOutputStream());
            case NONE -> {
                client.getOutputStream().write(response);
                client.getOutputStream().flush();
            }
            default -> {
                // the client is gone
            }
        }
    }

    private Socket connect(int n) throws IOException {
        ConnectException down = null;
        for (int i = 0; i < instances.size(); i++) {
            URI instance = instances.get((n - 1 + i) % instances.size());
            try {
                return new Socket(instance.getHost(), instance.getPort());
            } catch (ConnectException e) {
                down = e;
            }
        }
        throw new IOException("no instance is up", down);
    }

    private static String statusLine(byte[] response) {
        String text = new String(response, java.nio.charset.StandardCharsets.ISO_8859_1);
        int end = text.indexOf("\r\n");
        return end < 0 ? "" : text.substring(0, end);
    }

    @Override
    public void close() {
        server.close();
    }
}
