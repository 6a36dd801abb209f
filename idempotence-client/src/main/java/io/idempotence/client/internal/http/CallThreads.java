package io.idempotence.client.internal.http;

import io.idempotence.internal.DaemonThreads;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

/**
 * The threads of an installed client half. They are daemons, start with the first task, and end a second after the last one: a client is
 * never closed, and a thread that stays would keep the classes of an undeployed web application. The same is true of the JDK's shared
 * thread for timeouts of futures, which is therefore not used.
 */
public final class CallThreads {
    private static final long IDLE_MILLIS = 1_000;

    private final ScheduledThreadPoolExecutor timer;
    private final ExecutorService background;

    public CallThreads() {
        this(CallThreads::named);
    }

    /** @param threads the threads of a name */
    public CallThreads(Function<String, ThreadFactory> threads) {
        timer = new ScheduledThreadPoolExecutor(1, threads.apply("idempotence-timer"));
        timer.setKeepAliveTime(IDLE_MILLIS, TimeUnit.MILLISECONDS);
        timer.allowCoreThreadTimeOut(true);
        timer.setRemoveOnCancelPolicy(true);
        background = cached(threads.apply("idempotence-background"));
    }

    /**
     * Runs a short task that does not block after a delay. A cancelled task keeps nothing alive.
     *
     * @throws OutOfMemoryError if no thread can be started; the task will not run
     */
    public Future<?> later(long millis, Runnable task) {
        // A thread that is missing shows before the task is queued.
        timer.prestartCoreThread();
        return timer.schedule(task, millis, TimeUnit.MILLISECONDS);
    }

    ExecutorService timer() {
        return timer;
    }

    /** The executor for tasks that may block, with a thread for each task. */
    public ExecutorService background() {
        return background;
    }

    /** Runs a task in the background, or in this thread if no other can be started: a call must end. */
    public void runInBackground(Runnable task) {
        try {
            background.execute(task);
        } catch (OutOfMemoryError noThread) {
            task.run();
        }
    }

    /** An executor with as many threads as there are tasks. Each ends after a second without one. */
    public static ExecutorService cached(ThreadFactory threads) {
        return new ThreadPoolExecutor(
                0, Integer.MAX_VALUE, IDLE_MILLIS, TimeUnit.MILLISECONDS, new SynchronousQueue<>(), threads);
    }

    private static ThreadFactory named(String name) {
        return runnable -> {
            Thread thread = DaemonThreads.named(name).newThread(runnable);
            // The context class loader of the first caller may be that of an application that is undeployed.
            thread.setContextClassLoader(null);
            return thread;
        };
    }
}
