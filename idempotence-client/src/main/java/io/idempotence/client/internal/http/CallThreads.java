package io.idempotence.client.internal.http;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * The threads of an installed client half. They are daemons, start with the first task, and end a second after the last one: nobody
 * closes a client, and a thread that stays would keep the classes of a web application that was undeployed. So would the thread that
 * the JDK shares for the timeouts of futures.
 */
public final class CallThreads {
    private static final long IDLE_MILLIS = 1_000;

    private final ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1, named("idempotence-timer"));
    private final ExecutorService background;

    public CallThreads() {
        timer.setKeepAliveTime(IDLE_MILLIS, TimeUnit.MILLISECONDS);
        timer.allowCoreThreadTimeOut(true);
        timer.setRemoveOnCancelPolicy(true);
        background = cached(named("idempotence-background"));
    }

    /** For what is short and does not block. A task that is cancelled keeps nothing alive. */
    public ScheduledExecutorService timer() {
        return timer;
    }

    /** For what may block. A thread for each task. */
    public ExecutorService background() {
        return background;
    }

    /** As many threads as there are tasks. Each ends after a second without one. */
    public static ExecutorService cached(ThreadFactory threads) {
        return new ThreadPoolExecutor(
                0, Integer.MAX_VALUE, IDLE_MILLIS, TimeUnit.MILLISECONDS, new SynchronousQueue<>(), threads);
    }

    private static ThreadFactory named(String name) {
        return runnable -> {
            Thread thread = new Thread(runnable, name);
            thread.setDaemon(true);
            // That of the first caller may be an application that is undeployed.
            thread.setContextClassLoader(null);
            return thread;
        };
    }
}
