package io.idempotence.server;

import io.idempotence.server.storage.StorageKey;
import java.time.Duration;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;

/** The keys whose recorded results an error page may replace in a moment, so that attempts in this process do not get them. */
final class UnsettledResults {
    /** How long an error page may take to begin after its handler has ended. Not every failure has one, and nobody announces it. */
    private static final Duration LONGEST_GAP = Duration.ofSeconds(1);

    private final Map<StorageKey, Set<Hold>> holds = new ConcurrentHashMap<>();
    /** Those that end by themselves, the first one first. */
    private final Queue<Hold> ending = new ConcurrentLinkedQueue<>();

    /** Holds a key's result until the hold is ended. Several may hold one key. */
    Hold hold(StorageKey key) {
        Hold hold = new Hold(key);
        holds.compute(key, (here, before) -> {
            Set<Hold> all = before == null ? ConcurrentHashMap.newKeySet() : before;
            all.add(hold);
            return all;
        });
        return hold;
    }

    boolean contains(StorageKey key) {
        return holds.getOrDefault(key, Set.of()).stream().anyMatch(hold -> !hold.isOver());
    }

    final class Hold {
        private final StorageKey key;
        private volatile long endsFrom;
        private volatile boolean endsByItself;

        private Hold(StorageKey key) {
            this.key = key;
        }

        void end() {
            holds.computeIfPresent(key, (here, all) -> {
                all.remove(this);
                return all.isEmpty() ? null : all;
            });
        }

        /** Ends a second from now, unless it is ended before. To be called once. */
        void endSoon() {
            endsFrom = System.nanoTime();
            endsByItself = true;
            ending.add(this);
            // No timer: what is over no longer counts, and the next one that ends soon removes it.
            for (Hold first = ending.peek(); first != null && first.isOver(); first = ending.peek()) {
                if (ending.remove(first)) {
                    first.end();
                }
            }
        }

        private boolean isOver() {
            return endsByItself && System.nanoTime() - endsFrom >= LONGEST_GAP.toNanos();
        }
    }
}
