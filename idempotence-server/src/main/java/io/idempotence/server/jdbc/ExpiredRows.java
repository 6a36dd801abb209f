package io.idempotence.server.jdbc;

import io.idempotence.internal.DaemonThreads;
import java.time.Duration;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.IntUnaryOperator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The background deletion of expired rows: one batch per interval, and more batches soon if there are more rows. */
final class ExpiredRows implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(JdbcIdempotenceStorage.class);
    private static final int LARGEST_BATCH = 1_000;
    /** The pause between two batches of one backlog, in which its locks are free. */
    private static final Duration PAUSE = Duration.ofMillis(100);

    private final Duration every;
    private final IntUnaryOperator delete;
    private final ScheduledThreadPoolExecutor executor;

    // Only the executor's thread uses these.
    private int batch = LARGEST_BATCH;
    private boolean worked;

    /** @param delete deletes at most the given number of rows of each table, and returns how many */
    ExpiredRows(Duration every, IntUnaryOperator delete) {
        this.every = every;
        this.delete = delete;
        this.executor = new ScheduledThreadPoolExecutor(
                1, DaemonThreads.named("idempotence-cleanup"), new ThreadPoolExecutor.DiscardPolicy());
        executor.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
        schedule(later());
    }

    /** A random delay, so that instances that start at the same time do not clean up at the same time. */
    private long later() {
        long millis = every.toMillis();
        return millis / 2 + ThreadLocalRandom.current().nextLong(millis / 2 + 1);
    }

    private void schedule(long millis) {
        executor.schedule(this::deleteBatch, millis, TimeUnit.MILLISECONDS);
    }

    /**
     * Deletes one batch. A batch whose rows have large results may run into the timeout: after a failure the next one is half as large.
     * It grows again with each batch that works, slowly, because a failure costs the whole timeout.
     */
    private void deleteBatch() {
        boolean workedBefore = worked;
        boolean soon;
        try {
            soon = delete.applyAsInt(batch) >= batch;
            batch = Math.min(LARGEST_BATCH, batch + batch / 8 + 1);
            worked = true;
        } catch (RuntimeException | Error e) {
            // Any Throwable, because drivers also throw a LinkageError. The DataSource may be closed, too.
            if (!executor.isShutdown()) {
                warn(e, workedBefore);
            }
            soon = workedBefore;
            batch = Math.max(1, batch / 2);
            worked = false;
        }
        schedule(soon ? PAUSE.toMillis() : later());
    }

    /** @param workedBefore whether this may only show that the batch has grown too large, as it does time and again */
    private static void warn(Throwable e, boolean workedBefore) {
        String message = "expired records could not be deleted; a batch of half the size follows";
        if (workedBefore) {
            LOG.warn("{}: {}", message, e.toString());
        } else {
            LOG.warn(message, e);
        }
    }

    /** Stops the cleanup. A running batch ends by itself: an interrupt would close the files of an embedded H2. */
    @Override
    public void close() {
        executor.shutdown();
    }
}
