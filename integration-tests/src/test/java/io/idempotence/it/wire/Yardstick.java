package io.idempotence.it.wire;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A measure of how late this machine runs its threads. What a test measures at the same time may be late by as much.
 *
 * <p>A thread that does nothing but wake up sums up by how much it wakes too late. A thread that computes waits longer for a processor; on
 * Linux the kernel sums up for how long any thread waited.
 */
public final class Yardstick implements AutoCloseable {
    private static final long PULSE_MILLIS = 5;
    private static final Path PRESSURE = Path.of("/proc/pressure/cpu");
    private static final Pattern SOME_MICROS = Pattern.compile("some .*total=(\\d+)");

    private final ScheduledExecutorService pulse = Executors.newSingleThreadScheduledExecutor();
    private final Duration waitsBefore = waitsForProcessors();
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

    /** The lateness since this was created. */
    public Duration lateness() {
        Duration pulses = Duration.ofNanos(late.get());
        Duration waits = waitsForProcessors().minus(waitsBefore);
        return pulses.compareTo(waits) > 0 ? pulses : waits;
    }

    /** The waits since the machine was started; zero if the kernel does not count them. */
    private static Duration waitsForProcessors() {
        if (!Files.isReadable(PRESSURE)) {
            return Duration.ZERO;
        }
        try {
            Matcher some = SOME_MICROS.matcher(Files.readString(PRESSURE));
            return some.find() ? Duration.of(Long.parseLong(some.group(1)), ChronoUnit.MICROS) : Duration.ZERO;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public void close() {
        pulse.shutdownNow();
    }
}
