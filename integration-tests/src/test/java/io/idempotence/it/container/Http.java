package io.idempotence.it.container;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;

/** An HTTP caller without a client library's own behaviour: it follows no redirect, and takes any ID and header. */
public final class Http {
    private static final HttpClient CLIENT = client();

    private Http() {}

    private static HttpClient client() {
        return HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_1_1)
                .followRedirects(HttpClient.Redirect.NEVER)
                .build();
    }

    public static HttpResponse<byte[]> post(URI uri, String id, String body, String... headers) {
        return send(request("POST", uri, id, body, headers));
    }

    public static HttpRequest request(String method, URI uri, String id, String body, String... headers) {
        HttpRequest.Builder request = HttpRequest.newBuilder(uri)
                .timeout(Duration.ofMinutes(5))
                .method(method, HttpRequest.BodyPublishers.ofString(body));
        if (id != null) {
            request.header("Idempotency-Key", id);
        }
        if (headers.length > 0) {
            request.headers(headers);
        }
        return request.build();
    }

    public static HttpResponse<byte[]> send(HttpRequest request) {
        return send(CLIENT, request);
    }

    /** Sends a request over a new connection. A container may close one over which it responded to a malformed request, without a notice. */
    public static HttpResponse<byte[]> sendOverNewConnection(HttpRequest request) {
        return send(client(), request);
    }

    private static HttpResponse<byte[]> send(HttpClient client, HttpRequest request) {
        try {
            return client.send(request, HttpResponse.BodyHandlers.ofByteArray());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }

    public static CompletableFuture<HttpResponse<byte[]>> sendAsync(HttpRequest request) {
        return CLIENT.sendAsync(request, HttpResponse.BodyHandlers.ofByteArray());
    }

    public static String text(HttpResponse<byte[]> response) {
        return new String(response.body(), StandardCharsets.UTF_8);
    }

    public static boolean replayed(HttpResponse<byte[]> response) {
        return response.headers().firstValue("Idempotent-Replayed").orElse("").equals("true");
    }

    public static String refusal(HttpResponse<byte[]> response) {
        return response.headers().firstValue("Idempotency-Refusal").orElse(null);
    }

    /** Sends bytes as they are and returns everything that comes back until the server closes. */
    public static String raw(int port, String request) {
        try (Socket socket = new Socket("127.0.0.1", port)) {
            socket.setSoTimeout(20_000);
            socket.getOutputStream().write(request.getBytes(StandardCharsets.ISO_8859_1));
            socket.getOutputStream().flush();
            ByteArrayOutputStream response = new ByteArrayOutputStream();
            socket.getInputStream().transferTo(response);
            return response.toString(StandardCharsets.ISO_8859_1);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
