package io.idempotence.server;

import io.idempotence.server.storage.StorageKey;
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
    private long latestPlan;

    Leases(Background background) {
        this.background = background;
    }

    void started(Execution execution) {
        running.put(execution.key(), execution);
        plan(execution.lease().dividedBy(6));
    }

    boolean isRunning(StorageKey key) {
        return running.containsKey(key);
    }

    void ended(Execution execution) {
        running.remove(execution.key(), execution);
    }

    private synchronized void plan(Duration atMost) {
        boolean shorter = atMost.compareTo(tick) < 0;
        if (shorter) {
            tick = atMost.compareTo(SHORTEST_TICK) < 0 ? SHORTEST_TICK : atMost;
        }
        if (shorter || !planned) {
            // A look that was planned for a longer lease would come too late for a shorter one: this plan replaces it.
            long plan = ++latestPlan;
            planned = background.tryLater(tick, () -> renewDue(plan));
        }
    }

    private void renewDue(long plan) {
        synchronized (this) {
            if (plan != latestPlan) {
                return;
            }
            planned = false;
        }
        try {
            for (Execution execution : running.values()) {
                if (execution.isRenewalDue(System.nanoTime())) {
                    renew(execution);
                }
            }
        } finally {
            if (!running.isEmpty()) {
                plan(LONGEST_TICK);
            }
        }
    }

    /** One record, or one shard, that fails must not cost the others their leases. */
    private static void renew(Execution execution) {
        try {
            execution.renew();
        } catch (Throwable e) {
            LOG.warn("a lease could not be renewed, trying again", e);
            execution.renewalFailed();
        }
    }
}
