package io.idempotence.client.internal.http;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.ScheduledExecutorService;
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

    /** The executor for short tasks that do not block. A cancelled task keeps nothing alive. */
    public ScheduledExecutorService timer() {
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
            Thread thread = new Thread(runnable, name);
            thread.setDaemon(true);
            // The context class loader of the first caller may be that of an application that is undeployed.
            thread.setContextClassLoader(null);
            return thread;
        };
    }
}
