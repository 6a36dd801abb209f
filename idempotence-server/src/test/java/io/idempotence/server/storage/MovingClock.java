package io.idempotence.server.storage;

import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.concurrent.atomic.AtomicReference;

/** A clock that moves only when a test moves it. A test may run an action at each reading of it. Thread-safe. */
public final class MovingClock extends Clock {
    private final AtomicReference<Instant> now = new AtomicReference<>(Instant.parse("2026-01-01T00:00:00Z"));

    private volatile Runnable meanwhile = () -> {};

    /** Sets an action that runs at each reading, before and after the time is taken. */
    public void whenAsked(Runnable meanwhile) {
        this.meanwhile = meanwhile;
    }

    /** Moves on by {@code duration}. */
    public void advance(Duration duration) {
        now.updateAndGet(instant -> instant.plus(duration));
    }

    @Override
    public Instant instant() {
        meanwhile.run();
        Instant told = now.get();
        meanwhile.run();
        return told;
    }

    @Override
    public ZoneId getZone() {
        return ZoneOffset.UTC;
    }

    @Override
    public Clock withZone(ZoneId zone) {
        return this;
    }
}
