package io.idempotence.client.internal.scope;

import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.jspecify.annotations.Nullable;

/** A map by object identity with weak keys. Values must not hold their key. Thread-safe. */
public final class WeakIdentityMap<K, V> {
    private final ConcurrentMap<Key<K>, V> map = new ConcurrentHashMap<>();
    private final ReferenceQueue<K> gone = new ReferenceQueue<>();

    public void put(K key, V value) {
        forgetGone();
        map.put(new Key<>(key, gone), value);
    }

    public @Nullable V get(K key) {
        return map.get(new Key<>(key, null));
    }

    /** Removes an entry at once, without waiting for the garbage collector. */
    public void remove(K key) {
        map.remove(new Key<>(key, null));
    }

    /** The number of entries that are not removed yet. */
    public int size() {
        forgetGone();
        return map.size();
    }

    private void forgetGone() {
        Reference<? extends K> key;
        while ((key = gone.poll()) != null) {
            map.remove(key);
        }
    }

    private static final class Key<K> extends WeakReference<K> {
        private final int hash;

        Key(K key, @Nullable ReferenceQueue<K> queue) {
            super(key, queue);
            this.hash = System.identityHashCode(key);
        }

        @Override
        public int hashCode() {
            return hash;
        }

        @Override
        public boolean equals(@Nullable Object other) {
            if (this == other) {
                return true;
            }
            if (!(other instanceof Key<?> that)) {
                return false;
            }
            Object mine = get();
            return mine != null && mine == that.get();
        }
    }
}
