package io.idempotence.server;

import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The executions that run in this process, and the renewal of their leases (T9). One look over all of them a few times per lease: an execution
 * costs no more than an entry in a map.
 */
final class Leases {
    private static final Logger LOG = LoggerFactory.getLogger(Idempotence.class);
    private static final Duration SHORTEST_TICK = Duration.ofMillis(2);
    private static final Duration LONGEST_TICK = Duration.ofSeconds(1);

    private final Background background;
    private final Map<StorageKey, Execution> running = new ConcurrentHashMap<>();

    // Guarded by this object's lock, never across I/O.
    private Duration tick = LONGEST_TICK;
    private boolean planned;

    Leases(Background background) {
        this.background = background;
    }

    void started(Execution execution) {
        running.put(execution.key(), execution);
        plan(execution.lease().dividedBy(6));
    }

    void ended(Execution execution) {
        running.remove(execution.key(), execution);
    }

    private synchronized void plan(Duration atMost) {
        if (atMost.compareTo(tick) < 0) {
            tick = atMost.compareTo(SHORTEST_TICK) < 0 ? SHORTEST_TICK : atMost;
        }
        if (!planned) {
            planned = background.tryLater(tick, this::renewDue);
        }
    }

    private void renewDue() {
        synchronized (this) {
            planned = false;
        }
        try {
            long now = System.nanoTime();
            for (Execution execution : running.values()) {
                if (execution.isRenewalDue(now)) {
                    execution.renew();
                }
            }
        } catch (StorageUnavailableException e) {
            // The other executions would wait for the same storage. All of them are due again at the next look.
            LOG.warn("leases could not be renewed, trying again", e);
        } finally {
            if (!running.isEmpty()) {
                plan(LONGEST_TICK);
            }
        }
    }
}
