package io.idempotence.client.feign;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** An HTTP server that responds as its test says and records its requests. By default it responds with 200 "ok". */
final class TestServer implements AutoCloseable {
    static {
        // Headers and body are two packets: without this the second one waits 40 ms for the caller's acknowledgement.
        System.setProperty("sun.net.httpserver.nodelay", "true");
    }

    private final HttpServer server;
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final Queue<Reply> replies = new ConcurrentLinkedQueue<>();
    private final List<Received> requests = new CopyOnWriteArrayList<>();
    private final CountDownLatch closing = new CountDownLatch(1);

    TestServer() {
        try {
            server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        server.setExecutor(threads);
        server.createContext("/", this::handle);
        server.start();
    }

    record Received(String method, String path, Map<String, List<String>> headers, String body) {
        List<String> header(String name) {
            List<String> values = new ArrayList<>();
            headers.forEach((header, lines) -> {
                if (header.equalsIgnoreCase(name)) {
                    values.addAll(lines);
                }
            });
            return values;
        }

        String id() {
            return String.join("|", header("Idempotency-Key"));
        }
    }

    /** A response, or the lack of one. */
    static final class Reply {
        private final int status;
        private final Map<String, String> headers = new LinkedHashMap<>();
        private String body = "";
        private int cutAfter = -1;
        private Duration drip = Duration.ZERO;
        private Runnable before = () -> {};

        private Reply(int status) {
            this.status = status;
        }

        static Reply status(int status) {
            return new Reply(status);
        }

        static Reply ok(String body) {
            return status(200).body(body);
        }

        /** Never responds. */
        static Reply hang() {
            return status(0);
        }

        static Reply refusal(String code, int status) {
            return status(status).header("Idempotency-Refusal", code);
        }

        Reply header(String name, String value) {
            headers.put(name, value);
            return this;
        }

        Reply body(String text) {
            body = text;
            return this;
        }

        Reply cutAfter(int bytes) {
            cutAfter = bytes;
            return this;
        }

        /** In 50 pieces, with a pause after each. */
        Reply drip(Duration pause) {
            drip = pause;
            return this;
        }

        Reply before(Runnable action) {
            before = action;
            return this;
        }
    }

    TestServer respond(Reply... next) {
        replies.addAll(List.of(next));
        return this;
    }

    String url() {
        return "http://localhost:" + server.getAddress().getPort();
    }

    List<Received> requests() {
        return requests;
    }

    List<String> ids() {
        return requests.stream().map(Received::id).toList();
    }

    private void handle(HttpExchange exchange) throws IOException {
        try (exchange) {
            String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
            requests.add(new Received(
                    exchange.getRequestMethod(),
                    exchange.getRequestURI().getPath(),
                    Map.copyOf(exchange.getRequestHeaders()),
                    body));
            Reply reply = replies.poll();
            if (reply == null) {
                reply = Reply.ok("ok");
            }
            reply.before.run();
            if (reply.status == 0) {
                closing.await();
                return;
            }
            reply.headers.forEach((name, value) -> exchange.getResponseHeaders().add(name, value));
            byte[] bytes = reply.body.getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(reply.status, bytes.length == 0 ? -1 : bytes.length);
            int piece = Math.max(1, bytes.length / 50);
            for (int i = 0; !reply.drip.isZero() && i < bytes.length; i += piece) {
                exchange.getResponseBody().write(bytes, i, Math.min(piece, bytes.length - i));
                exchange.getResponseBody().flush();
                if (closing.await(reply.drip.toMillis(), TimeUnit.MILLISECONDS)) {
                    return;
                }
            }
            if (bytes.length > 0 && reply.drip.isZero()) {
                exchange.getResponseBody().write(bytes, 0, reply.cutAfter < 0 ? bytes.length : reply.cutAfter);
                exchange.getResponseBody().flush();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void close() {
        closing.countDown();
        server.stop(0);
        threads.shutdownNow();
    }
}
