package io.idempotence.server;

import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

/**
 * The log of an outage of the storage: one WARN with the cause when it begins, one a minute with the number of failures while it lasts, one
 * when it is over. If short outages follow each other, three a minute are logged like this, and the others are counted in the next line.
 * The effect on each request is logged at DEBUG.
 */
final class OutageLog {
    private static final long QUIET = TimeUnit.SECONDS.toNanos(1);
    private static final int MOST_ANNOUNCED = 3;
    private static final long MINUTE = TimeUnit.MINUTES.toNanos(1);

    private final Logger log;
    private final LongSupplier nanoTime;

    private volatile boolean failing;
    // Guarded by this object's lock, which is not held while something is logged.
    private boolean announced;
    private int announcedInMinute;
    private long minuteBegan;
    private long beganAt;
    private long latestFailure;
    private long reportedAt;
    private long failures;
    private long unreported;

    OutageLog(Logger log, LongSupplier nanoTime) {
        this.log = log;
        this.nanoTime = nanoTime;
    }

    /** Whether an outage has begun and its end is not logged yet. */
    boolean isFailing() {
        return failing;
    }

    void failed(String what, Throwable cause) {
        long now = nanoTime.getAsLong();
        boolean begins = false;
        long unlogged = 0;
        @Nullable String report = null;
        synchronized (this) {
            if (!failing) {
                failing = true;
                beganAt = now;
                latestFailure = now;
                failures = 0;
                if (announcedInMinute == 0 || now - minuteBegan >= MINUTE) {
                    minuteBegan = now;
                    announcedInMinute = 0;
                }
                begins = announcedInMinute < MOST_ANNOUNCED;
                announced = begins;
            }
            failures++;
            unreported++;
            failedAt(now);
            if (begins) {
                announcedInMinute++;
                unlogged = unreported - 1;
                reportedAt = now;
                unreported = 0;
            } else if (now - reportedAt >= MINUTE) {
                announced = true;
                report = "the storage still fails: " + unreported + " failures since the last report, " + failures
                        + " in " + seconds(now - beganAt) + " s; the latest: " + what + ": " + cause.getMessage();
                reportedAt = now;
                unreported = 0;
            }
        }
        if (begins) {
            log.warn(
                    "the storage fails: {}{}; further failures are counted and reported once a minute, each is logged at DEBUG",
                    what,
                    unlogged == 0 ? "" : ", after " + unlogged + " failures in short outages that were not logged",
                    cause);
        } else if (report != null) {
            log.warn(report);
        }
    }

    /** Reports a failed probe. No request failed, so it is not counted, but the outage is not over. */
    void probeFailed() {
        long now = nanoTime.getAsLong();
        synchronized (this) {
            failedAt(now);
        }
    }

    /** A thread that has read the clock may get here after others that read it later. */
    private void failedAt(long now) {
        if (now - latestFailure > 0) {
            latestFailure = now;
        }
    }

    void responded() {
        if (!failing) {
            return;
        }
        long now = nanoTime.getAsLong();
        @Nullable String report = null;
        synchronized (this) {
            if (failing && now - latestFailure >= QUIET) {
                failing = false;
                if (announced) {
                    unreported = 0;
                    report = "the storage responds again, after " + failures + " failures in "
                            + seconds(latestFailure - beganAt) + " s";
                }
            }
        }
        if (report != null) {
            log.warn(report);
        }
    }

    private static String seconds(long nanos) {
        return String.valueOf(TimeUnit.NANOSECONDS.toMillis(nanos) / 1000.0);
    }
}
