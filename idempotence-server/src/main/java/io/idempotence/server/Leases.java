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
    /** A storage that lets one record's renewal wait, as a dead shard does, must not cost the other records their leases. */
    private static final int MOST_THREADS = 16;

    /** How many renewals that failed before may be tried at once; the other threads stay free. */
    private static final int MOST_IN_TROUBLE = 4;

    private static final long SHORTEST_TICK = TimeUnit.MILLISECONDS.toNanos(2);
    private static final long LONGEST_TICK = TimeUnit.SECONDS.toNanos(1);

    private final BackgroundTasks background;
    /** One for each ID as a rule. A late owner may run beside its successor, and must not take its place. */
    private final Map<StorageKey, List<ClaimedExecution>> running = new ConcurrentHashMap<>();

    private final Semaphore trouble = new Semaphore(MOST_IN_TROUBLE);
    private final Queue<ClaimedExecution> due = new ConcurrentLinkedQueue<>();
    private final ThreadPoolExecutor renewers;

    // Written under this object's lock, which is never held across I/O.
    private volatile long tick = LONGEST_TICK;
    private volatile boolean planned;
    private long latestPlan;

    Leases(BackgroundTasks background) {
        this.background = background;
        // Whoever is turned away is not missed: those who are busy go on until nothing is due.
        this.renewers = new ThreadPoolExecutor(
                0,
                MOST_THREADS,
                10,
                TimeUnit.SECONDS,
                new SynchronousQueue<>(),
                task -> {
                    Thread thread = new Thread(task, "idempotence-renewals");
                    thread.setDaemon(true);
                    return thread;
                },
                new ThreadPoolExecutor.DiscardPolicy());
    }

    void started(ClaimedExecution execution) {
        running.merge(
                execution.key(),
                List.of(execution),
                (here, one) -> Stream.concat(here.stream(), one.stream()).toList());
        long atMost = execution.lease().toNanos() / 6;
        // A look takes its plan away before it begins: one that is planned still will see this execution.
        if (!planned || atMost < tick) {
            plan(atMost);
        }
    }

    boolean isRunning(StorageKey key) {
        return running.containsKey(key);
    }

    void ended(ClaimedExecution execution) {
        if (running.remove(execution.key(), List.of(execution))) {
            return;
        }
        running.computeIfPresent(execution.key(), (key, here) -> {
            List<ClaimedExecution> left =
                    here.stream().filter(other -> other != execution).toList();
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
            planned = background.tryLater(Duration.ofNanos(tick), () -> renewDue(plan)) != null;
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
            List<ClaimedExecution> all =
                    running.values().stream().flatMap(List::stream).toList();
            for (ClaimedExecution execution : longestAgoFirst(all)) {
                if (execution.isRenewalDue(System.nanoTime()) && execution.beginRenewal()) {
                    begun(execution);
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

    static List<ClaimedExecution> longestAgoFirst(List<ClaimedExecution> executions) {
        // Renewals go on meanwhile: what is compared must not change while it is sorted.
        record Seen(ClaimedExecution execution, long renewedAt) {}
        return executions.stream()
                .map(execution -> new Seen(execution, execution.renewedAt()))
                .sorted(Comparator.comparingLong(Seen::renewedAt))
                .map(Seen::execution)
                .toList();
    }

    /** Permits are given here, in order, not by the threads that renew, which would race for them. */
    private void begun(ClaimedExecution execution) {
        if (execution.isRenewalInTrouble() && !trouble.tryAcquire()) {
            // It stays due, for the next look.
            execution.endRenewal();
            return;
        }
        due.add(execution);
        renewers.execute(this::renewAllDue);
    }

    private void renewAllDue() {
        ClaimedExecution execution;
        while ((execution = due.poll()) != null) {
            boolean hasPermit = execution.isRenewalInTrouble();
            renew(execution);
            if (hasPermit) {
                trouble.release();
            }
            execution.endRenewal();
        }
    }

    private static void renew(ClaimedExecution execution) {
        try {
            execution.renew();
        } catch (Throwable e) {
            execution.renewalFailed(e);
        }
    }

    @Override
    public void close() {
        background.close();
        renewers.shutdownNow();
        BackgroundTasks.awaitEnd(renewers);
    }
}
