package io.idempotence.spring.client;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

/** A proxy in front of a provider that passes on each request, and loses as many of the next responses as a test asks for. */
final class LossyProxy implements AutoCloseable {
    private static final byte[] UNAVAILABLE =
            "HTTP/1.1 503 Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
                    .getBytes(StandardCharsets.ISO_8859_1);

    private final ServerSocket listener;
    private final int provider;
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final AtomicInteger losses = new AtomicInteger();
    private final AtomicInteger cuts = new AtomicInteger();
    private final AtomicInteger replacements = new AtomicInteger();
    private final List<String> requests = new CopyOnWriteArrayList<>();
    private volatile boolean leaving;

    private LossyProxy(int provider) throws IOException {
        this.provider = provider;
        this.listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        threads.execute(this::accept);
    }

    /** @param provider its port on the loopback */
    static LossyProxy before(int provider) {
        try {
            return new LossyProxy(provider);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    int port() {
        return listener.getLocalPort();
    }

    String url() {
        return "http://127.0.0.1:" + port();
    }

    /** The provider executes the next requests, and their responses are lost. */
    void loseResponses(int count) {
        losses.set(count);
    }

    /** The provider executes the next requests, and their responses end before their bodies do. */
    void cutResponses(int count) {
        cuts.set(count);
    }

    /** The provider executes the next requests, and a gateway's 503 takes the place of their responses. */
    void replaceResponses(int count) {
        replacements.set(count);
    }

    /** Nobody listens any more when the client gets its next response. */
    void leaveBeforeTheNextResponse() {
        leaving = true;
    }

    /** The headers of the requests so far, as they came in. */
    List<String> requests() {
        return requests;
    }

    /** The values of a header in all requests so far; "-" if a request has none. */
    List<String> headers(String name) {
        return requests.stream()
                .map(request -> request.lines()
                        .filter(line -> line.toLowerCase(Locale.ROOT).startsWith(name.toLowerCase(Locale.ROOT) + ":"))
                        .map(line -> line.substring(name.length() + 1).trim())
                        .findFirst()
                        .orElse("-"))
                .toList();
    }

    void forget() {
        requests.clear();
        losses.set(0);
        cuts.set(0);
        replacements.set(0);
    }

    private void accept() {
        while (!listener.isClosed()) {
            try {
                Socket client = listener.accept();
                threads.execute(() -> serve(client));
            } catch (IOException e) {
                // closed
            }
        }
    }

    private void serve(Socket client) {
        try (client) {
            InputStream in = client.getInputStream();
            String head = head(in);
            if (head.isEmpty()) {
                return;
            }
            // Decided now: a request of an earlier test may end during this one.
            boolean lost = takes(losses);
            boolean cut = !lost && takes(cuts);
            boolean replaced = !lost && !cut && takes(replacements);
            requests.add(head);
            byte[] body = body(in, head);
            try (Socket upstream = new Socket(InetAddress.getLoopbackAddress(), provider)) {
                String closing = head.replaceAll("(?i)\r\nconnection:[^\r]*", "")
                        .replaceFirst("\r\n\r\n$", "\r\nConnection: close\r\n\r\n");
                upstream.getOutputStream().write(closing.getBytes(StandardCharsets.ISO_8859_1));
                upstream.getOutputStream().write(body);
                upstream.getOutputStream().flush();
                byte[] response = upstream.getInputStream().readAllBytes();
                if (replaced) {
                    response = UNAVAILABLE;
                }
                if (leaving) {
                    listener.close();
                }
                if (lost) {
                    client.setSoLinger(true, 0);
                } else {
                    client.getOutputStream().write(response, 0, response.length - (cut ? 3 : 0));
                    client.getOutputStream().flush();
                }
            }
        } catch (IOException e) {
            // the client is gone
        }
    }

    private static boolean takes(AtomicInteger left) {
        return left.getAndUpdate(count -> Math.max(0, count - 1)) > 0;
    }

    private static String head(InputStream in) throws IOException {
        ByteArrayOutputStream head = new ByteArrayOutputStream();
        for (int b = in.read(); b >= 0; b = in.read()) {
            head.write(b);
            String read = head.toString(StandardCharsets.ISO_8859_1);
            if (read.endsWith("\r\n\r\n")) {
                return read;
            }
        }
        return "";
    }

    private static byte[] body(InputStream in, String head) throws IOException {
        String lower = head.toLowerCase(Locale.ROOT);
        int at = lower.indexOf("\r\ncontent-length:");
        if (at >= 0) {
            return in.readNBytes(Integer.parseInt(
                    lower.substring(at + 17, lower.indexOf("\r\n", at + 2)).trim()));
        }
        if (!lower.contains("\r\ntransfer-encoding: chunked")) {
            return new byte[0];
        }
        ByteArrayOutputStream chunks = new ByteArrayOutputStream();
        for (int b = in.read(); b >= 0; b = in.read()) {
            chunks.write(b);
            if (chunks.toString(StandardCharsets.ISO_8859_1).endsWith("0\r\n\r\n")) {
                break;
            }
        }
        return chunks.toByteArray();
    }

    @Override
    public void close() throws IOException {
        listener.close();
        threads.shutdownNow();
    }
}
