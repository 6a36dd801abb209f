package io.idempotence.client.okhttp;

import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.internal.call.ClientOperation;
import io.idempotence.client.internal.call.ClientOperations;
import io.idempotence.client.internal.http.HttpMethods;
import okhttp3.HttpUrl;
import okhttp3.Request;
import org.jspecify.annotations.Nullable;
import org.slf4j.LoggerFactory;

/** The operations by the names of client and HTTP method. */
final class OkHttpOperations {
    private final ClientOperations operations;
    private final @Nullable String name;

    OkHttpOperations(IdempotenceClientConfig config, @Nullable String name) {
        this.operations = new ClientOperations(config, LoggerFactory.getLogger(IdempotentOkHttp.class));
        this.name = name;
    }

    ClientOperation of(Request request) {
        String client = name == null ? authority(request.url()) : name;
        return operations.of(client, HttpMethods.label(request.method()), null);
    }

    private static String authority(HttpUrl url) {
        return url.port() == HttpUrl.defaultPort(url.scheme()) ? url.host() : url.host() + ":" + url.port();
    }
}
