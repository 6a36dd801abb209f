package io.idempotence.spring.client;

import io.idempotence.client.internal.scope.WeakIdentityMap;
import java.net.http.HttpClient;

/**
 * Copies of the JDK's clients that do not follow redirects. The JDK decides about them for a client, not for a request. A client of another
 * class is never copied: it may measure, sign or route what it sends. A copy has no {@code localAddress} and no {@code priority}, for which
 * the JDK has no getters.
 */
final class WithoutRedirects {
    private static final String OF_JDK = "jdk.internal.net.http.HttpClientFacade";

    private final WeakIdentityMap<HttpClient, HttpClient> copies = new WeakIdentityMap<>();

    /** Whether a client is one of the JDK's own. What another one does by itself is unknown. */
    static boolean isOfJdk(HttpClient client) {
        return client.getClass().getName().equals(OF_JDK);
    }

    /** Returns the client itself if it follows none, or if it cannot be copied. A copy has connections of its own. */
    HttpClient of(HttpClient client) {
        if (client.followRedirects() == HttpClient.Redirect.NEVER || !isOfJdk(client)) {
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
