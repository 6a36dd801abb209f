package io.idempotence.server;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * The threads that give duplicates their results after a wait, and so run the application's stages behind them. A stage may block: on the
 * thread that ends the wait, it would hold up all other waits, or the response of the first attempt.
 */
final class ResultThreads implements AutoCloseable {
    private static final int MOST = 16;

    private final ThreadPoolExecutor pool;

    ResultThreads(ThreadFactory factory) {
        this.pool = new ThreadPoolExecutor(MOST, MOST, 10, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), factory);
        pool.allowCoreThreadTimeOut(true);
    }

    /** Runs a task on one of the threads. If none can be started, the calling thread runs it: no duplicate stays without its result. */
    void run(Runnable task) {
        try {
            pool.execute(task);
        } catch (OutOfMemoryError | RejectedExecutionException noThread) {
            task.run();
        }
    }

    /** Ends the threads when they have run what waits. Does not wait for them, because the application's stages may block. */
    @Override
    public void close() {
        pool.shutdown();
    }
}
