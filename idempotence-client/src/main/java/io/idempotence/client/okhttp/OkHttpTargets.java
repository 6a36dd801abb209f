package io.idempotence.client.okhttp;

import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceConfigException;
import io.idempotence.client.internal.http.HttpMethods;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import okhttp3.HttpUrl;
import org.jspecify.annotations.Nullable;

/** The targets by the names of client and method. */
final class OkHttpTargets {
    private static final int MOST = 1000;

    private final IdempotenceClientConfig config;
    private final @Nullable String name;
    private final ConcurrentMap<String, OkHttpTarget> targets = new ConcurrentHashMap<>();

    /** @throws IdempotenceConfigException if settings under {@code name} do not fit each other */
    OkHttpTargets(IdempotenceClientConfig config, @Nullable String name) {
        this.config = config;
        this.name = name;
        if (name != null) {
            HttpMethods.labels().forEach(method -> of(name, method));
        }
    }

    /** @throws IdempotenceConfigException if settings for it do not fit each other */
    OkHttpTarget of(HttpUrl url, String method) {
        return of(name == null ? authority(url) : name, method);
    }

    private OkHttpTarget of(String client, String method) {
        String key = client + "#" + method;
        OkHttpTarget known = targets.get(key);
        if (known != null) {
            return known;
        }
        if (targets.size() >= MOST) {
            // A caller of everybody's hosts. Targets are made again when needed; of their state only a warning is lost.
            targets.clear();
        }
        return targets.computeIfAbsent(key, k -> new OkHttpTarget(client, method, config));
    }

    private static String authority(HttpUrl url) {
        return url.port() == HttpUrl.defaultPort(url.scheme()) ? url.host() : url.host() + ":" + url.port();
    }
}
