package io.idempotence.spring.client;

import io.idempotence.client.internal.scope.WeakIdentityMap;
import java.net.http.HttpClient;

/** Copies of the JDK's clients that do not follow redirects. The JDK decides about them for a client, not for a request. */
final class WithoutRedirects {
    private final WeakIdentityMap<HttpClient, HttpClient> copies = new WeakIdentityMap<>();

    /** Returns the client itself if it follows none. A copy has connections of its own. */
    HttpClient of(HttpClient client) {
        if (client.followRedirects() == HttpClient.Redirect.NEVER) {
            return client;
        }
        HttpClient known = copies.get(client);
        if (known == null) {
            known = copy(client);
            copies.put(client, known);
        }
        return known;
    }

    private static HttpClient copy(HttpClient client) {
        HttpClient.Builder copy = HttpClient.newBuilder()
                .followRedirects(HttpClient.Redirect.NEVER)
                .version(client.version())
                .sslContext(client.sslContext())
                .sslParameters(client.sslParameters());
        client.cookieHandler().ifPresent(copy::cookieHandler);
        client.connectTimeout().ifPresent(copy::connectTimeout);
        client.proxy().ifPresent(copy::proxy);
        client.authenticator().ifPresent(copy::authenticator);
        client.executor().ifPresent(copy::executor);
        return copy.build();
    }
}
