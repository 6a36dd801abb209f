package io.idempotence.client.okhttp;

import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.internal.call.ClientOperation;
import io.idempotence.client.internal.http.HttpMethods;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import okhttp3.HttpUrl;
import okhttp3.Request;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The operations by the names of client and HTTP method. */
final class OkHttpOperations {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotentOkHttp.class);
    private static final int MOST = 1000;

    private final IdempotenceClientConfig config;
    private final @Nullable String name;
    private final ConcurrentMap<String, ClientOperation> operations = new ConcurrentHashMap<>();

    OkHttpOperations(IdempotenceClientConfig config, @Nullable String name) {
        this.config = config;
        this.name = name;
    }

    ClientOperation of(Request request) {
        return of(name == null ? authority(request.url()) : name, HttpMethods.label(request.method()));
    }

    private ClientOperation of(String client, String method) {
        String key = client + "#" + method;
        ClientOperation known = operations.get(key);
        if (known != null) {
            return known;
        }
        if (operations.size() >= MOST) {
            // This client calls very many hosts.
            // Operations are created again when needed, and only a warning in their state is lost.
            operations.clear();
        }
        return operations.computeIfAbsent(key, k -> new ClientOperation(client, method, method, config, null, LOG));
    }

    private static String authority(HttpUrl url) {
        return url.port() == HttpUrl.defaultPort(url.scheme()) ? url.host() : url.host() + ":" + url.port();
    }
}
