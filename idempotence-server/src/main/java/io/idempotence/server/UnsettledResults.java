package io.idempotence.server;

import io.idempotence.server.storage.StorageKey;
import java.time.Duration;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;

/** The keys whose recorded results an error page may still replace, so that attempts in this process do not get them. */
final class UnsettledResults {
    /**
     * The longest time between the end of a handler and the beginning of its error page. Not every failure has a page, and nothing
     * announces one.
     */
    private static final Duration LONGEST_GAP = Duration.ofSeconds(1);

    private final Map<StorageKey, Set<Hold>> holds = new ConcurrentHashMap<>();
    /** The holds that end by themselves, the earliest first. */
    private final Queue<Hold> ending = new ConcurrentLinkedQueue<>();

    /** Holds a key's result until the hold is ended. A key may have several holds. */
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
        Set<Hold> all = holds.get(key);
        return all != null && all.stream().anyMatch(hold -> !hold.isOver());
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

        /** Ends this hold after one second, unless it is ended before. Call it once. */
        void endSoon() {
            endsFrom = System.nanoTime();
            endsByItself = true;
            ending.add(this);
            // There is no timer: a hold that is over has no effect, and the next call of this method removes it.
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
