package io.idempotence.client.okhttp;

import io.idempotence.client.IdempotenceClientConfig;
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

    OkHttpTargets(IdempotenceClientConfig config, @Nullable String name) {
        this.config = config;
        this.name = name;
    }

    OkHttpTarget of(HttpUrl url, String method) {
        String client = name == null ? authority(url) : name;
        String key = client + "#" + method;
        OkHttpTarget known = targets.get(key);
        if (known != null) {
            return known;
        }
        if (targets.size() >= MOST) {
            // A caller of everybody's hosts. Targets are made again when needed, and hold no state; budgets do.
            targets.clear();
        }
        return targets.computeIfAbsent(key, k -> new OkHttpTarget(client, method, config));
    }

    private static String authority(HttpUrl url) {
        return url.port() == HttpUrl.defaultPort(url.scheme()) ? url.host() : url.host() + ":" + url.port();
    }
}
