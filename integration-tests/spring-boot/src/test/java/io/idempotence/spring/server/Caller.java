package io.idempotence.spring.server;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.springframework.context.ApplicationContext;

/** A caller of an application over HTTP. */
record Caller(String origin) {
    private static final HttpClient HTTP = HttpClient.newHttpClient();

    static Caller of(ApplicationContext application) {
        return new Caller("http://127.0.0.1:" + application.getEnvironment().getRequiredProperty("local.server.port"));
    }

    static Caller ofManagement(ApplicationContext application) {
        return new Caller(
                "http://127.0.0.1:" + application.getEnvironment().getRequiredProperty("local.management.port"));
    }

    HttpResponse<String> get(String path) {
        return send(request(path).GET());
    }

    /** Sends a POST with an ID, or without one if it is empty. */
    HttpResponse<String> post(String path, String id) {
        return send(withId(request(path), id).POST(HttpRequest.BodyPublishers.noBody()));
    }

    HttpResponse<String> postAs(String user, String password, String path, String id) {
        String credentials =
                Base64.getEncoder().encodeToString((user + ":" + password).getBytes(StandardCharsets.UTF_8));
        return send(withId(request(path), id)
                .header("Authorization", "Basic " + credentials)
                .POST(HttpRequest.BodyPublishers.noBody()));
    }

    HttpResponse<String> form(String method, String path, String id, String form) {
        return send(withId(request(path), id)
                .header("Content-Type", "application/x-www-form-urlencoded")
                .method(method, HttpRequest.BodyPublishers.ofString(form)));
    }

    private HttpRequest.Builder request(String path) {
        return HttpRequest.newBuilder(URI.create(origin + path));
    }

    private static HttpRequest.Builder withId(HttpRequest.Builder request, String id) {
        return id.isEmpty() ? request : request.header("Idempotency-Key", id);
    }

    private static HttpResponse<String> send(HttpRequest.Builder request) {
        try {
            return HTTP.send(request.build(), HttpResponse.BodyHandlers.ofString());
        } catch (IOException e) {
            throw new IllegalStateException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }
}
