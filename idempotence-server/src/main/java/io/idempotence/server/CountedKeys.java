package io.idempotence.server;

import io.idempotence.server.storage.StorageKey;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** A multiset of keys. Thread-safe. */
final class CountedKeys {
    private final Map<StorageKey, Integer> counts = new ConcurrentHashMap<>();

    void add(StorageKey key) {
        counts.merge(key, 1, Integer::sum);
    }

    void remove(StorageKey key) {
        counts.computeIfPresent(key, (here, n) -> n == 1 ? null : n - 1);
    }

    boolean contains(StorageKey key) {
        return counts.containsKey(key);
    }
}
