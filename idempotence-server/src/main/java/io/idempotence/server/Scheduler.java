package io.idempotence.server;

import java.time.Duration;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Runs tasks later, on daemon threads of one name that exist only while there is something to do. Each kind of task has a scheduler of its
 * own, so that none waits for another that waits for the storage or for the application.
 */
final class Scheduler implements AutoCloseable {
    private static final long CLOSING_NANOS = TimeUnit.SECONDS.toNanos(5);

    private final ScheduledThreadPoolExecutor executor;

    /** @param threads at most */
    Scheduler(String threadName, int threads) {
        this.executor = new ScheduledThreadPoolExecutor(threads, daemons(threadName));
        executor.setKeepAliveTime(10, TimeUnit.SECONDS);
        executor.allowCoreThreadTimeOut(true);
        executor.setRemoveOnCancelPolicy(true);
        executor.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
    }

    static ThreadFactory daemons(String threadName) {
        return task -> {
            Thread thread = new Thread(task, threadName);
            thread.setDaemon(true);
            return thread;
        };
    }

    /** Runs a task once, later, unless this is closed before or what is returned is cancelled. Null: this is closed already. */
    @Nullable
    Future<?> later(Duration delay, Runnable task) {
        try {
            return executor.schedule(() -> runLogged(task), delay.toNanos(), TimeUnit.NANOSECONDS);
        } catch (RejectedExecutionException closed) {
            return null;
        }
    }

    /** Runs a task. What it throws is logged: an executor would keep it to itself. */
    static void runLogged(Runnable task) {
        try {
            task.run();
        } catch (Throwable e) {
            Events.LOG.error("a background task failed", e);
        }
    }

    /** Takes no more tasks, and forgets those that are not under way. */
    void beginClose() {
        executor.shutdown();
    }

    /** Ends what is under way as well. */
    void interrupt() {
        executor.shutdownNow();
    }

    /** Waits for what is under way, for at most 5 seconds, and interrupts what is not done by then. */
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

    /** Waits for the end of what a pool has to do; what is not done by then is interrupted, and also what runs when the caller is. */
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

    /** Waits for threads that were told to stop, for at most 3 seconds: an undeployed application should leave none behind. */
    static void awaitEnd(ExecutorService stopped) {
        try {
            if (!stopped.awaitTermination(3, TimeUnit.SECONDS)) {
                Events.LOG.warn(
                        "a background thread waits for the storage still; it ends when the driver's timeout does");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
