package io.idempotence.server;

import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * The leases of all executions in this process, and their renewal (T9). A scheduler checks all of them several times per lease, so an
 * execution costs only an entry in a map.
 */
final class Leases implements AutoCloseable {
    /**
     * The largest number of renewing threads. Several, because one record whose renewal hangs, as on a dead shard, must not cost the other
     * records their leases.
     */
    private static final int MOST_THREADS = 16;

    /** How many of the threads renew leases whose last renewal failed. The others stay free. */
    private static final int MOST_IN_TROUBLE = 4;

    private static final long SHORTEST_TICK = TimeUnit.MILLISECONDS.toNanos(2);
    private static final long LONGEST_TICK = TimeUnit.SECONDS.toNanos(1);

    private final Scheduler looks;
    /** Usually one lease per key. A late owner may run at the same time as its successor, and must not replace the successor's entry. */
    private final Map<StorageKey, List<Lease>> running = new ConcurrentHashMap<>();

    private final Queue<Lease> due = new ConcurrentLinkedQueue<>();
    /** Those due leases whose last renewal failed. */
    private final Queue<Lease> dueAgain = new ConcurrentLinkedQueue<>();

    private final Semaphore trouble = new Semaphore(MOST_IN_TROUBLE);
    /** Tasks beyond the limit are discarded: busy threads continue until nothing is due. */
    private final ThreadPoolExecutor renewers;

    private volatile boolean closed;

    // Guarded by this object's lock, which is never held across I/O.
    private volatile long tick = LONGEST_TICK;
    private volatile boolean planned;
    private long plannedAt;
    private long latestPlan;

    Leases(ThreadFactory threads) {
        this.looks = new Scheduler(threads, 1);
        this.renewers = new ThreadPoolExecutor(
                0,
                MOST_THREADS,
                10,
                TimeUnit.SECONDS,
                new SynchronousQueue<>(),
                threads,
                new ThreadPoolExecutor.DiscardPolicy());
    }

    /**
     * Renews a lease until it is {@linkplain #ended ended}.
     *
     * @throws OutOfMemoryError if no thread can be started that would renew it; end it
     * @throws StorageUnavailableException if this is closed; end it
     */
    void started(Lease lease) {
        running.merge(
                lease.key(),
                List.of(lease),
                (here, one) -> Stream.concat(here.stream(), one.stream()).toList());
        // After the entry: a lease from before the closing is renewed while the last completions are written.
        if (closed) {
            throw new StorageUnavailableException("this instance is closed, and renews no lease", null);
        }
        long atMost = tickOf(lease);
        // A check clears its plan before it begins, so one that is still planned will see this lease.
        if (!planned || atMost < tick) {
            plan(atMost);
        }
    }

    boolean isRunning(StorageKey key) {
        return running.containsKey(key);
    }

    private boolean isRunning(Lease lease) {
        return running.getOrDefault(lease.key(), List.of()).contains(lease);
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

    private static long tickOf(Lease lease) {
        return Math.min(Math.max(lease.nanos() / 6, SHORTEST_TICK), LONGEST_TICK);
    }

    /** The time from one check to the next. */
    Duration tick() {
        return Duration.ofNanos(tick);
    }

    private synchronized void plan(long atMost) {
        tick = Math.min(tick, atMost);
        long at = System.nanoTime() + tick;
        // A check planned for a longer lease would come too late for a shorter one: this plan replaces it.
        if (!planned || at - plannedAt < 0) {
            long plan = ++latestPlan;
            planned = false;
            plannedAt = at;
            planned = looks.later(Duration.ofNanos(tick), () -> renewDue(plan)) != null;
        }
    }

    /** @param shortest the tick that the leases need which still run */
    private void planNext(long shortest) {
        synchronized (this) {
            // Otherwise a lease that started meanwhile has planned the check, perhaps with a shorter tick.
            if (!planned) {
                tick = shortest;
            }
            if (!running.isEmpty()) {
                plan(tick);
            }
        }
    }

    private Stream<Lease> leases() {
        return running.values().stream().flatMap(List::stream);
    }

    private void renewDue(long plan) {
        synchronized (this) {
            if (plan != latestPlan) {
                return;
            }
            planned = false;
        }
        // If a check fails for want of memory, the next one follows after the same time.
        long shortest = tick;
        try {
            shortest = leases().mapToLong(Leases::tickOf).min().orElse(LONGEST_TICK);
            long now = System.nanoTime();
            List<Lease> toRenew =
                    leases().filter(lease -> lease.isRenewalDue(now)).toList();
            begin(longestAgoFirst(toRenew), now);
            if (!due.isEmpty() || !dueAgain.isEmpty()) {
                // Catches leases that were added just after the busy threads had found nothing due.
                startRenewing();
            }
        } finally {
            planNext(shortest);
        }
    }

    static List<Lease> longestAgoFirst(List<Lease> leases) {
        // Renewals continue during the sort, so it compares copies that do not change.
        record Seen(Lease lease, long renewedAt) {}
        return leases.stream()
                .map(lease -> new Seen(lease, lease.renewedAt()))
                .sorted(Comparator.comparingLong(Seen::renewedAt))
                .map(Seen::lease)
                .toList();
    }

    private void begin(List<Lease> inOrder, long now) {
        for (Lease lease : inOrder) {
            if (!lease.beginRenewal()) {
                continue;
            }
            // It may have been renewed since it was listed.
            if (lease.isRenewalDue(now)) {
                (lease.isRenewalInTrouble() ? dueAgain : due).add(lease);
                startRenewing();
            } else {
                lease.endRenewal();
            }
        }
    }

    private void startRenewing() {
        try {
            renewers.execute(this::renewAllDue);
        } catch (OutOfMemoryError noThread) {
            // A renewal that hangs delays the next check, but without a renewal the lease would end.
            renewAllDue();
        }
    }

    private void renewAllDue() {
        renewAll(due);
        if (trouble.tryAcquire()) {
            try {
                renewAll(dueAgain);
            } finally {
                trouble.release();
            }
        }
    }

    private void renewAll(Queue<Lease> leases) {
        Lease lease;
        while ((lease = leases.poll()) != null) {
            try {
                // One whose execution has ended meanwhile would only take the place of another.
                if (isRunning(lease)) {
                    renew(lease);
                }
            } finally {
                lease.endRenewal();
            }
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

    /** Accepts no more leases. */
    void beginClose() {
        closed = true;
    }

    @Override
    public void close() {
        beginClose();
        looks.close();
        renewers.shutdownNow();
        Scheduler.awaitEnd(renewers);
    }
}
