package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.CorruptRecordException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/** Writes of one kind that failed when they were due, and are retried (T22). */
final class BackgroundWrites implements AutoCloseable {
    private static final Duration FIRST_DELAY = Duration.ofMillis(100);
    private static final Duration LONGEST_DELAY = Duration.ofSeconds(1);

    /** The memory that all waiting writes may hold. A write beyond it is given up and reported. */
    static final long MAX_BYTES = 64L << 20;

    static final int BYTES_PER_WRITE = 1024;

    private final Events events;
    private final StorageGuard guard;
    private final ThreadFactory factory;
    private final int threads;
    private final IdempotenceEvent givenUp;
    private final LongSupplier nanoTime;
    private final Duration closing;
    private final Scheduler scheduler;
    private final AtomicLong bytes = new AtomicLong();

    /** The tasks that have not run yet, so that {@link #close} can run each of them once more. */
    private final Map<Runnable, IdempotenceId> waiting = new ConcurrentHashMap<>();

    private volatile boolean closed;
    /** When running writes are interrupted, by {@link System#nanoTime}. */
    private volatile long end;

    /**
     * @param guard the guard of the storage that is written to
     * @param threads the largest number of threads
     * @param givenUp the event for a write that is given up
     */
    BackgroundWrites(Events events, StorageGuard guard, ThreadFactory factory, int threads, IdempotenceEvent givenUp) {
        this(events, guard, factory, threads, givenUp, System::nanoTime, Duration.ofSeconds(5));
    }

    /**
     * @param nanoTime the clock that decides when a write is given up, like {@link System#nanoTime}
     * @param closing how long {@link #close} waits for the remaining writes
     */
    BackgroundWrites(
            Events events,
            StorageGuard guard,
            ThreadFactory factory,
            int threads,
            IdempotenceEvent givenUp,
            LongSupplier nanoTime,
            Duration closing) {
        this.events = events;
        this.guard = guard;
        this.factory = factory;
        this.threads = threads;
        this.givenUp = givenUp;
        this.nanoTime = nanoTime;
        this.closing = closing;
        this.scheduler = new Scheduler(factory, threads);
    }

    /** Retries a write until it succeeds, finds a damaged record, or {@code giveUpAfter} has passed. Gives it up if it does not fit. */
    void retry(IdempotenceId id, int size, Duration giveUpAfter, Runnable write, Runnable afterwards) {
        if (!offer(id, size, giveUpAfter, write, afterwards)) {
            giveUp(id, "too many writes wait for the storage", null);
            afterwards.run();
        }
    }

    /** Retries a write like {@link #retry}. Does nothing and returns false if it does not fit. */
    boolean offer(IdempotenceId id, int size, Duration giveUpAfter, Runnable write, Runnable afterwards) {
        long cost = (long) size + BYTES_PER_WRITE;
        if (bytes.addAndGet(cost) > MAX_BYTES) {
            bytes.addAndGet(-cost);
            return false;
        }
        schedule(new Write(id, cost, nanoTime.getAsLong() + giveUpAfter.toNanos(), write, afterwards), FIRST_DELAY);
        guard.suspect();
        return true;
    }

    private record Write(IdempotenceId id, long cost, long giveUpAt, Runnable write, Runnable afterwards) {}

    private void schedule(Write write, Duration delay) {
        add(write.id, delay, () -> attempt(write, delay));
    }

    /**
     * Runs a task on a thread for writes. Drops it if this is closed before it has begun.
     *
     * @throws OutOfMemoryError if no thread can be started for the task; it will not run
     */
    void execute(Runnable task) {
        scheduler.later(Duration.ZERO, task);
    }

    /** Runs a task once: after the delay, or when this is closed. If no thread can be started, the task waits for one. */
    void add(IdempotenceId id, Duration delay, Runnable task) {
        waiting.put(task, id);
        if (!scheduler.queue(delay, () -> runOnce(task))) {
            runOnce(task);
        }
    }

    private void runOnce(Runnable task) {
        if (waiting.remove(task) != null) {
            Scheduler.runLogged(task);
        }
    }

    private void attempt(Write write, Duration delay) {
        // An attempt that began before the closing is not the last one.
        boolean last = closed;
        boolean isTime = nanoTime.getAsLong() - write.giveUpAt < 0;
        if (!last && isTime && guard.isOpen()) {
            // An open breaker costs no thread: the first probe that succeeds flushes.
            schedule(write, LONGEST_DELAY);
            return;
        }
        try {
            write.write.run();
        } catch (CorruptRecordException e) {
            done(write);
            events.storageFailed(write.id, "a write was given up", e);
            return;
        } catch (Throwable e) {
            // Any exception of a storage counts: without its completion, the outcome would look unknown (T22).
            if (last || (closed && System.nanoTime() - end >= 0)) {
                giveUp(write.id, "closed", e);
            } else if (isTime) {
                Duration doubled = delay.multipliedBy(2);
                schedule(write, doubled.compareTo(LONGEST_DELAY) < 0 ? doubled : LONGEST_DELAY);
                // Logged last, because a retry must not depend on the log.
                events.logStorageFailed(write.id, "a background write failed", e);
            } else {
                done(write);
                giveUp(write.id, "its retention is over", e);
            }
            return;
        }
        done(write);
        // A failure of the log is not a failure of the write.
        Events.LOG.debug("a write that had failed before needs no further attempt");
    }

    private void giveUp(IdempotenceId id, String why, @Nullable Throwable cause) {
        if (cause != null) {
            events.logStorageFailed(id, "a background write failed", cause);
        }
        // One line for each, without a stack trace: operators must find the IDs.
        events.publish(givenUp, id, "a write was given up, " + why + "; its record may show as abandoned");
    }

    private void done(Write write) {
        bytes.addAndGet(-write.cost);
        write.afterwards.run();
    }

    /** Whether a write that has failed waits for the storage. */
    boolean isAwaiting() {
        return bytes.get() > 0;
    }

    /** Retries every waiting write now, regardless of its back-off. Called when the storage is back. */
    void flush() {
        try {
            waiting.keySet().forEach(task -> scheduler.later(Duration.ZERO, () -> runOnce(task)));
        } catch (OutOfMemoryError noThread) {
            // The next probe that succeeds flushes again.
            guard.suspect();
        }
    }

    /**
     * Retries every waiting write once, on additional threads, for at most 5 seconds, and then stops the threads. The rest is given up. If
     * no thread can be started, the calling thread retries, and the last write may take until the storage's own timeout.
     */
    @Override
    public void close() {
        beginClose().run();
    }

    /**
     * Begins to close, without a call to the storage. The returned task waits for the end, so that several instances can close at the same
     * time.
     */
    Runnable beginClose() {
        if (!closed) {
            end = System.nanoTime() + closing.toNanos();
            closed = true;
        }
        scheduler.beginClose();
        // Additional threads, because the running writes may hang.
        ThreadPoolExecutor last =
                new ThreadPoolExecutor(threads, threads, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), factory);
        List<Runnable> withoutThread = new ArrayList<>();
        for (Runnable task : waiting.keySet()) {
            Runnable attempt = () -> runOnce(task);
            try {
                last.execute(attempt);
            } catch (OutOfMemoryError noThread) {
                withoutThread.add(attempt);
            }
        }
        if (last.getPoolSize() > 0) {
            // One thread is enough to make them, and unlike the calling thread it can be interrupted.
            last.getQueue().addAll(withoutThread);
            withoutThread.clear();
        }
        last.shutdown();
        return () -> endClose(last, withoutThread);
    }

    /** @param withoutThread the attempts that the calling thread has to make itself */
    private void endClose(ThreadPoolExecutor last, List<Runnable> withoutThread) {
        for (Runnable attempt : withoutThread) {
            if (System.nanoTime() - end >= 0) {
                break;
            }
            attempt.run();
        }
        // A running write may still succeed, so it is not interrupted before the end.
        boolean interrupted = scheduler.isInterruptedBefore(end);
        interrupted |= Scheduler.isInterruptedBefore(end, last);
        waiting.forEach((task, id) -> {
            if (waiting.remove(task) != null) {
                giveUp(id, "closed", null);
            }
        });
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
