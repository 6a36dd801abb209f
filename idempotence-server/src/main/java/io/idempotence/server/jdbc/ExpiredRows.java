package io.idempotence.server.jdbc;

import java.time.Duration;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.IntUnaryOperator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The background deletion of expired rows: a batch now and then, and the next one soon where there are more. */
final class ExpiredRows implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(JdbcIdempotenceStorage.class);
    private static final int BATCH = 1_000;
    /** Between two batches of one backlog, so that its locks are free in between. */
    private static final Duration PAUSE = Duration.ofMillis(100);

    private final Duration every;
    private final IntUnaryOperator delete;
    private final ScheduledThreadPoolExecutor executor;

    /** @param delete deletes at most as many rows as it is told, of each table, and returns how many it did */
    ExpiredRows(Duration every, IntUnaryOperator delete) {
        this.every = every;
        this.delete = delete;
        this.executor = new ScheduledThreadPoolExecutor(
                1,
                task -> {
                    Thread thread = new Thread(task, "idempotence-cleanup");
                    thread.setDaemon(true);
                    return thread;
                },
                new ThreadPoolExecutor.DiscardPolicy());
        executor.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
        schedule(later());
    }

    /** Instances that were started at once go apart. */
    private long later() {
        long millis = every.toMillis();
        return millis / 2 + ThreadLocalRandom.current().nextLong(millis / 2 + 1);
    }

    private void schedule(long millis) {
        executor.schedule(this::deleteBatch, millis, TimeUnit.MILLISECONDS);
    }

    private void deleteBatch() {
        long next = later();
        try {
            if (delete.applyAsInt(BATCH) >= BATCH) {
                next = PAUSE.toMillis();
            }
        } catch (RuntimeException | Error e) {
            // Drivers throw a LinkageError, too. The DataSource of a closed storage may be closed.
            if (!executor.isShutdown()) {
                LOG.warn("expired records could not be deleted, trying again later", e);
            }
        }
        schedule(next);
    }

    /** A batch under way ends by itself: an interrupt would close the files of an embedded H2. */
    @Override
    public void close() {
        executor.shutdown();
    }
}
