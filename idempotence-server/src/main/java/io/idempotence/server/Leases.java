package io.idempotence.server;

import io.idempotence.server.storage.StorageKey;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * The executions that run in this process, and the renewal of their leases (T9). One look over all of them a few times per lease:
 * an execution costs no more than an entry in a map.
 */
final class Leases implements AutoCloseable {
    private static final String THREAD_NAME = "idempotence-renewals";

    /** A storage that lets one record's renewal wait, as a dead shard does, must not cost the other records their leases. */
    private static final int MOST_THREADS = 16;

    /** How many renewals that failed before may be tried at once; the other threads stay free. */
    private static final int MOST_IN_TROUBLE = 4;

    private static final long SHORTEST_TICK = TimeUnit.MILLISECONDS.toNanos(2);
    private static final long LONGEST_TICK = TimeUnit.SECONDS.toNanos(1);

    private final Scheduler looks = new Scheduler(THREAD_NAME, 1);
    /** One for each ID as a rule. A late owner may run beside its successor, and must not take its place. */
    private final Map<StorageKey, List<Lease>> running = new ConcurrentHashMap<>();

    private final Semaphore trouble = new Semaphore(MOST_IN_TROUBLE);
    private final Queue<Lease> due = new ConcurrentLinkedQueue<>();
    /** Whoever is turned away is not missed: those who are busy go on until nothing is due. */
    private final ThreadPoolExecutor renewers = new ThreadPoolExecutor(
            0,
            MOST_THREADS,
            10,
            TimeUnit.SECONDS,
            new SynchronousQueue<>(),
            Scheduler.daemons(THREAD_NAME),
            new ThreadPoolExecutor.DiscardPolicy());

    // Written under this object's lock, which is never held across I/O.
    private volatile long tick = LONGEST_TICK;
    private volatile boolean planned;
    private long latestPlan;

    void started(Lease lease) {
        running.merge(
                lease.key(),
                List.of(lease),
                (here, one) -> Stream.concat(here.stream(), one.stream()).toList());
        long atMost = lease.nanos() / 6;
        // A look takes its plan away before it begins: one that is planned still will see this lease.
        if (!planned || atMost < tick) {
            plan(atMost);
        }
    }

    boolean isRunning(StorageKey key) {
        return running.containsKey(key);
    }

    void ended(Lease lease) {
        if (running.remove(lease.key(), List.of(lease))) {
            return;
        }
        running.computeIfPresent(lease.key(), (key, here) -> {
            List<Lease> left = here.stream().filter(other -> other != lease).toList();
            return left.isEmpty() ? null : left;
        });
    }

    private synchronized void plan(long atMost) {
        boolean shorter = atMost < tick;
        if (shorter) {
            tick = Math.max(atMost, SHORTEST_TICK);
        }
        if (shorter || !planned) {
            // A look that was planned for a longer lease would come too late for a shorter one: this plan replaces it.
            long plan = ++latestPlan;
            planned = looks.later(Duration.ofNanos(tick), () -> renewDue(plan)) != null;
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
            List<Lease> all = running.values().stream().flatMap(List::stream).toList();
            for (Lease lease : longestAgoFirst(all)) {
                if (lease.isRenewalDue(System.nanoTime()) && lease.beginRenewal()) {
                    begun(lease);
                }
            }
            if (!due.isEmpty()) {
                // Also what was added when everybody who was busy had just seen that nothing is due.
                renewers.execute(this::renewAllDue);
            }
        } finally {
            if (!running.isEmpty()) {
                plan(LONGEST_TICK);
            }
        }
    }

    static List<Lease> longestAgoFirst(List<Lease> leases) {
        // Renewals go on meanwhile: what is compared must not change while it is sorted.
        record Seen(Lease lease, long renewedAt) {}
        return leases.stream()
                .map(lease -> new Seen(lease, lease.renewedAt()))
                .sorted(Comparator.comparingLong(Seen::renewedAt))
                .map(Seen::lease)
                .toList();
    }

    /** Permits are given here, in order, not by the threads that renew, which would race for them. */
    private void begun(Lease lease) {
        if (lease.isRenewalInTrouble() && !trouble.tryAcquire()) {
            // It stays due, for the next look.
            lease.endRenewal();
            return;
        }
        due.add(lease);
        renewers.execute(this::renewAllDue);
    }

    private void renewAllDue() {
        Lease lease;
        while ((lease = due.poll()) != null) {
            boolean hasPermit = lease.isRenewalInTrouble();
            renew(lease);
            if (hasPermit) {
                trouble.release();
            }
            lease.endRenewal();
        }
    }

    void renew(Lease lease) {
        try {
            if (!lease.renew()) {
                ended(lease);
            }
        } catch (Throwable e) {
            lease.renewalFailed(e);
        }
    }

    @Override
    public void close() {
        looks.close();
        renewers.shutdownNow();
        Scheduler.awaitEnd(renewers);
    }
}
