package io.idempotence;

import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinTask;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/** The only worker of a fork-join pool. While its task waits for a future, it runs another task on top of that one. */
public final class HelpingWorker {
    private HelpingWorker() {}

    /** Runs a task in a worker. */
    public static <T> T call(Callable<T> task) throws Exception {
        ForkJoinPool pool = new ForkJoinPool(1);
        try {
            return pool.submit(task).get(60, TimeUnit.SECONDS);
        } finally {
            pool.shutdownNow();
        }
    }

    /** Waits for another task, which the worker runs meanwhile. To be called in a task of {@link #call}. */
    public static <T> T awaiting(Supplier<T> other) {
        ForkJoinPool pool = ForkJoinTask.getPool();
        Thread worker = Thread.currentThread();
        return new FutureOf<T>(pool)
                .completeAsync(
                        () -> {
                            if (Thread.currentThread() != worker) {
                                throw new IllegalStateException(
                                        "the worker waits and does not help, so this tests nothing");
                            }
                            return other.get();
                        },
                        pool)
                .join();
    }

    /** A future for which the workers of a pool help. By default, JDK 17 has one for those of the common pool. */
    private static final class FutureOf<T> extends CompletableFuture<T> {
        private final Executor pool;

        FutureOf(Executor pool) {
            this.pool = pool;
        }

        @Override
        public Executor defaultExecutor() {
            return pool;
        }
    }
}
