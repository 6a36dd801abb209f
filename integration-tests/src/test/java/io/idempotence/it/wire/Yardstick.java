package io.idempotence.it.wire;

import java.time.Duration;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * How late this machine is: a thread that has nothing to do but wake up adds up by how much it does so too late. What is measured beside
 * it may be as late without a fault of its own.
 */
public final class Yardstick implements AutoCloseable {
    private static final long PULSE_MILLIS = 5;

    private final ScheduledExecutorService pulse = Executors.newSingleThreadScheduledExecutor();
    private long before = System.nanoTime();
    private final AtomicLong late = new AtomicLong();

    public Yardstick() {
        pulse.scheduleWithFixedDelay(this::beat, PULSE_MILLIS, PULSE_MILLIS, TimeUnit.MILLISECONDS);
    }

    private void beat() {
        long now = System.nanoTime();
        late.addAndGet(Math.max(0, now - before - TimeUnit.MILLISECONDS.toNanos(PULSE_MILLIS)));
        before = now;
    }

    /** The sum, since it began. */
    public Duration lateness() {
        return Duration.ofNanos(late.get());
    }

    @Override
    public void close() {
        pulse.shutdownNow();
    }
}
