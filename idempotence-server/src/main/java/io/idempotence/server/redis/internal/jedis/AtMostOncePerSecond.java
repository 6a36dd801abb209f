package io.idempotence.server.redis.internal.jedis;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/** An action that runs at once, but not again within a second. Thread-safe, without a lock. */
final class AtMostOncePerSecond implements Runnable {
    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

    private final Runnable action;
    private final LongSupplier nanoTime;
    private final AtomicLong last;

    AtMostOncePerSecond(Runnable action, LongSupplier nanoTime) {
        this.action = action;
        this.nanoTime = nanoTime;
        this.last = new AtomicLong(nanoTime.getAsLong() - SECOND);
    }

    @Override
    public void run() {
        long now = nanoTime.getAsLong();
        long before = last.get();
        if (now - before >= SECOND && last.compareAndSet(before, now)) {
            action.run();
        }
    }
}
