package io.idempotence.server;

import java.time.Duration;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.RunnableScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * A scheduler whose daemon threads have one name and exist only while there is work. Each kind of task has its own scheduler, so that none
 * waits behind another that waits for the storage or for the application.
 */
final class Scheduler implements AutoCloseable {
    private static final long CLOSING_NANOS = TimeUnit.SECONDS.toNanos(5);

    private final ScheduledThreadPoolExecutor executor;
    /** Whether a task is queued for which no thread could be started. */
    private final AtomicBoolean lacksThread = new AtomicBoolean();

    /** @param threads the largest number of threads */
    Scheduler(ThreadFactory factory, int threads) {
        this.executor = new Executor(threads, factory);
        executor.setKeepAliveTime(10, TimeUnit.SECONDS);
        executor.allowCoreThreadTimeOut(true);
        executor.setRemoveOnCancelPolicy(true);
        executor.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
    }

    private static final class ScheduledWork implements Runnable {
        private final Runnable work;
        private volatile @Nullable RunnableScheduledFuture<?> queued;

        ScheduledWork(Runnable work) {
            this.work = work;
        }

        @Override
        public void run() {
            runLogged(work);
        }
    }

    /** Shows each task its entry in the queue, where it stays if no thread can be started for it. */
    private static final class Executor extends ScheduledThreadPoolExecutor {
        Executor(int threads, ThreadFactory factory) {
            super(threads, factory);
        }

        @Override
        protected <V> RunnableScheduledFuture<V> decorateTask(Runnable task, RunnableScheduledFuture<V> entry) {
            ((ScheduledWork) task).queued = entry;
            return entry;
        }
    }

    /**
     * Runs a task once after a delay, unless this is closed or the returned future is cancelled before. Returns null if this is closed.
     *
     * @throws OutOfMemoryError if no thread can be started for the task; it will not run
     */
    @Nullable
    Future<?> later(Duration delay, Runnable task) {
        ScheduledWork planned = new ScheduledWork(task);
        try {
            return schedule(delay, planned);
        } catch (RejectedExecutionException closed) {
            return null;
        } catch (OutOfMemoryError noThread) {
            RunnableScheduledFuture<?> queued = planned.queued;
            if (queued == null || executor.remove(queued)) {
                throw noThread;
            }
            // A thread that had other work before has taken it.
            return queued;
        }
    }

    private Future<?> schedule(Duration delay, ScheduledWork task) {
        return executor.schedule(task, delay.toNanos(), TimeUnit.NANOSECONDS);
    }

    /**
     * Runs a task once after a delay, unless this is closed before. If no thread can be started now, the task waits for one. Returns false
     * if this is closed.
     */
    boolean queue(Duration delay, Runnable task) {
        try {
            schedule(delay, new ScheduledWork(task));
            return true;
        } catch (RejectedExecutionException closed) {
            return false;
        } catch (OutOfMemoryError noThread) {
            lacksThread.set(true);
            return true;
        }
    }

    /**
     * Starts a thread for a {@linkplain #queue queued} task that could not get one before. Does nothing if another thread has taken the
     * task. If a thread still cannot be started, the task keeps waiting.
     */
    void startMissingThread() {
        if (lacksThread.get()
                && lacksThread.getAndSet(false)
                && !executor.getQueue().isEmpty()) {
            try {
                executor.prestartCoreThread();
            } catch (OutOfMemoryError stillNone) {
                lacksThread.set(true);
            }
        }
    }

    /** Runs a task and logs what it throws, because an executor would swallow that. Never throws, not even if the log does. */
    static void runLogged(Runnable task) {
        try {
            task.run();
        } catch (Throwable e) {
            try {
                Events.LOG.error("a background task failed", e);
            } catch (Throwable theLogIsBroken) {
                // There is nowhere else to report it.
            }
        }
    }

    /** Accepts no more tasks, and drops those that have not started. */
    void beginClose() {
        executor.shutdown();
    }

    /** Also interrupts running tasks. */
    void interrupt() {
        executor.shutdownNow();
    }

    /** Waits for running tasks for at most 5 seconds, then interrupts them. */
    @Override
    public void close() {
        beginClose();
        if (isInterruptedBefore(System.nanoTime() + CLOSING_NANOS)) {
            Thread.currentThread().interrupt();
        }
    }

    boolean isInterruptedBefore(long end) {
        return isInterruptedBefore(end, executor);
    }

    /**
     * Waits for a pool to terminate. Interrupts its tasks at the end of the wait, or if the calling thread is interrupted; returns whether
     * it was.
     */
    static boolean isInterruptedBefore(long end, ExecutorService pool) {
        try {
            if (!pool.awaitTermination(end - System.nanoTime(), TimeUnit.NANOSECONDS)) {
                pool.shutdownNow();
            }
            return false;
        } catch (InterruptedException e) {
            pool.shutdownNow();
            return true;
        }
    }

    void awaitEnd() {
        awaitEnd(executor);
    }

    /** Waits at most 3 seconds for threads that were interrupted, because an undeployed application should leave none behind. */
    static void awaitEnd(ExecutorService stopped) {
        try {
            if (!stopped.awaitTermination(3, TimeUnit.SECONDS)) {
                Events.LOG.warn("a background thread still waits for the storage; it ends after the driver's timeout");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
