package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.CorruptRecordException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One kind of what the server half does on a thread of its own: writes that could not be made when they were due (T22), renewals (T9), or
 * polls. One daemon thread, or a few, named after their kind, that exist only while there is something to do.
 */
final class BackgroundTasks implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Idempotence.class);
    private static final Duration FIRST_DELAY = Duration.ofMillis(100);
    private static final Duration LONGEST_DELAY = Duration.ofSeconds(1);

    /** What all waiting writes may hold in memory; one more is given up loudly. */
    static final long MAX_BYTES = 64L << 20;

    static final int BYTES_PER_WRITE = 1024;

    /** What is known of the storage that writes wait for. */
    interface Outage {
        /** Nothing is known of it. */
        Outage UNKNOWN = new Outage() {
            @Override
            public boolean isKnown() {
                return false;
            }

            @Override
            public void suspect() {}
        };

        /** Whether no write can succeed now. Its end is told by {@link BackgroundTasks#flush()}. */
        boolean isKnown();

        /** A write waits. */
        void suspect();
    }

    private final Events events;
    private final Outage outage;
    private final LongSupplier nanoTime;
    private final Duration closing;
    private final int threads;
    private final IdempotenceEvent givenUp;
    private final ScheduledThreadPoolExecutor executor;
    private final AtomicLong bytes = new AtomicLong();

    /** What is to be done still, so that it can be done once more when this is closed. */
    private final Map<Runnable, IdempotenceId> waiting = new ConcurrentHashMap<>();

    private volatile boolean closed;
    private volatile boolean timeIsOver;

    BackgroundTasks(Events events, String threadName) {
        this(events, threadName, 1, IdempotenceEvent.UNKNOWN, Outage.UNKNOWN);
    }

    /**
     * @param threads at most
     * @param givenUp what the listener is told of a write that is given up
     * @param outage of the storage that is written to
     */
    BackgroundTasks(Events events, String threadName, int threads, IdempotenceEvent givenUp, Outage outage) {
        this(events, threadName, threads, givenUp, outage, System::nanoTime, Duration.ofSeconds(5));
    }

    /**
     * @param nanoTime tells when a write is given up; as {@link System#nanoTime}
     * @param closing how long what waits may take when this is closed
     */
    BackgroundTasks(
            Events events,
            String threadName,
            int threads,
            IdempotenceEvent givenUp,
            Outage outage,
            LongSupplier nanoTime,
            Duration closing) {
        this.events = events;
        this.outage = outage;
        this.nanoTime = nanoTime;
        this.closing = closing;
        this.threads = threads;
        this.givenUp = givenUp;
        this.executor = new ScheduledThreadPoolExecutor(threads, task -> {
            Thread thread = new Thread(task, threadName);
            thread.setDaemon(true);
            return thread;
        });
        executor.setKeepAliveTime(10, TimeUnit.SECONDS);
        executor.allowCoreThreadTimeOut(true);
        executor.setRemoveOnCancelPolicy(true);
        executor.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
    }

    /** Runs a task once, later, or when this is closed. */
    void add(IdempotenceId id, Duration delay, Runnable task) {
        waiting.put(task, id);
        try {
            executor.schedule(() -> runOnce(task), delay.toNanos(), TimeUnit.NANOSECONDS);
        } catch (RejectedExecutionException closed) {
            runOnce(task);
        }
    }

    /** Runs a task once, later, unless this is closed before or what is returned is cancelled. Null: this is closed already. */
    @Nullable
    Future<?> tryLater(Duration delay, Runnable task) {
        try {
            return executor.schedule(() -> logging(task), delay.toNanos(), TimeUnit.NANOSECONDS);
        } catch (RejectedExecutionException closed) {
            return null;
        }
    }

    /** Whether writes wait. */
    boolean isAwaiting() {
        return !waiting.isEmpty();
    }

    /** Tries every write that waits now, whatever its back-off: the storage is back. */
    void flush() {
        for (Runnable task : waiting.keySet()) {
            try {
                executor.execute(() -> runOnce(task));
            } catch (RejectedExecutionException closed) {
                return;
            }
        }
    }

    private static void logging(Runnable task) {
        try {
            task.run();
        } catch (Throwable e) {
            // The executor would keep it to itself.
            LOG.error("a background task failed", e);
        }
    }

    private void runOnce(Runnable task) {
        if (waiting.remove(task) != null) {
            logging(task);
        }
    }

    /** Tries a write again and again until it succeeds, finds the record damaged, or {@code giveUpAfter} has passed. */
    void retry(IdempotenceId id, int size, Duration giveUpAfter, Runnable write, Runnable afterwards) {
        long cost = (long) size + BYTES_PER_WRITE;
        if (bytes.addAndGet(cost) > MAX_BYTES) {
            bytes.addAndGet(-cost);
            givenUp(id, "too many wait for the storage", null);
            afterwards.run();
            return;
        }
        schedule(new Attempt(id, cost, nanoTime.getAsLong() + giveUpAfter.toNanos(), write, afterwards), FIRST_DELAY);
        outage.suspect();
    }

    private void schedule(Attempt attempt, Duration delay) {
        add(attempt.id, delay, () -> {
            // What began before the end is tried once more.
            boolean last = closed;
            boolean isTime = nanoTime.getAsLong() - attempt.giveUpAt < 0;
            if (!last && isTime && outage.isKnown()) {
                // No thread is spent on it: the first probe that succeeds flushes.
                schedule(attempt, LONGEST_DELAY);
                return;
            }
            try {
                attempt.write.run();
                LOG.debug("a write that had failed before has been made");
                done(attempt);
            } catch (CorruptRecordException e) {
                done(attempt);
                events.storageFailed(attempt.id, "a write was given up", e);
            } catch (Throwable e) {
                // Whatever a storage throws: an end that is not written would be a false "outcome unknown" (T22).
                if (last || timeIsOver) {
                    givenUp(attempt.id, "closed", e);
                } else if (isTime) {
                    events.logStorageFailed(attempt.id, "a write in the background", e);
                    Duration doubled = delay.multipliedBy(2);
                    schedule(attempt, doubled.compareTo(LONGEST_DELAY) < 0 ? doubled : LONGEST_DELAY);
                } else {
                    done(attempt);
                    givenUp(attempt.id, "its time is over", e);
                }
            }
        });
    }

    private void givenUp(IdempotenceId id, String why, @Nullable Throwable cause) {
        if (cause != null) {
            events.logStorageFailed(id, "a write in the background", cause);
        }
        // One line for each, without a stack trace: somebody must find their IDs.
        events.publish(givenUp, id, "a write was given up, " + why + "; its record may show as abandoned");
    }

    private void done(Attempt attempt) {
        bytes.addAndGet(-attempt.cost);
        attempt.afterwards.run();
    }

    /**
     * Stops the threads after one more try of everything that waits, on as many threads again, for at most 5 seconds. What is
     * then left is given up.
     */
    @Override
    public void close() {
        beginClose().run();
    }

    /** Begins to close; what is returned waits for the end, so that several can be closed in the time of one. */
    Runnable beginClose() {
        closed = true;
        long end = System.nanoTime() + closing.toNanos();
        executor.shutdown();
        // Beside those that are under way, which may hang.
        ThreadPoolExecutor last = new ThreadPoolExecutor(
                threads, threads, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), executor.getThreadFactory());
        waiting.keySet().forEach(task -> last.execute(() -> runOnce(task)));
        last.shutdown();
        return () -> endClose(end, last);
    }

    private void endClose(long end, ThreadPoolExecutor last) {
        // A write that is under way may yet succeed: it is not interrupted while there is time.
        boolean interrupted = isInterruptedBefore(end, executor) | isInterruptedBefore(end, last);
        waiting.forEach((task, id) -> {
            if (waiting.remove(task) != null) {
                givenUp(id, "closed", null);
            }
        });
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Waits for the end of what a pool has to do; what is not done by then is interrupted, and also what runs when the caller is. */
    private boolean isInterruptedBefore(long end, ThreadPoolExecutor pool) {
        try {
            if (!pool.awaitTermination(end - System.nanoTime(), TimeUnit.NANOSECONDS)) {
                timeIsOver = true;
                pool.shutdownNow();
            }
            return false;
        } catch (InterruptedException e) {
            pool.shutdownNow();
            return true;
        }
    }

    /** Waits for threads that were told to stop, for at most 3 seconds: an undeployed application should leave none behind. */
    static void awaitEnd(ExecutorService stopped) {
        try {
            if (!stopped.awaitTermination(3, TimeUnit.SECONDS)) {
                LOG.warn("a background thread waits for the storage still; it ends when the driver's timeout does");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private record Attempt(IdempotenceId id, long cost, long giveUpAt, Runnable write, Runnable afterwards) {}
}
