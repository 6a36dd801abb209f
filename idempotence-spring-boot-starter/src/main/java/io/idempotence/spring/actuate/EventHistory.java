package io.idempotence.spring.actuate;

import io.idempotence.IdempotenceId;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.IdempotenceListener;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/** The events of this process during the last 24 hours, counted by the minute. Holds no IDs. Thread-safe, without locks. */
final class EventHistory implements IdempotenceListener {
    static final int MINUTES = 24 * 60;

    private final AtomicReferenceArray<@Nullable Minute> ring = new AtomicReferenceArray<>(MINUTES);
    private final Clock clock;

    EventHistory(Clock clock) {
        this.clock = clock;
    }

    /** A series that the page plots. */
    enum Series {
        REPLAYED("Replayed", "a caller lost a response and got it again"),
        REFUSED("Refused", "a duplicate met a running attempt, or one ID came with two contents"),
        UNKNOWN("Unknown", "an outcome is unknown until a person decides");

        private final String title;
        private final String meaning;

        Series(String title, String meaning) {
            this.title = title;
            this.meaning = meaning;
        }

        String title() {
            return title;
        }

        String meaning() {
            return meaning;
        }
    }

    private record Minute(long number, AtomicIntegerArray counts) {}

    @Override
    public void onEvent(IdempotenceEvent event, IdempotenceId id) {
        Series series = switch (event) {
            case REPLAYED -> Series.REPLAYED;
            case IN_PROGRESS, KEY_REUSED -> Series.REFUSED;
            case UNKNOWN -> Series.UNKNOWN;
            default -> null;
        };
        if (series != null) {
            current().counts.incrementAndGet(series.ordinal());
        }
    }

    private Minute current() {
        long now = minute();
        int slot = (int) (now % MINUTES);
        Minute known = ring.get(slot);
        if (known != null && known.number == now) {
            return known;
        }
        Minute fresh = new Minute(now, new AtomicIntegerArray(Series.values().length));
        return ring.compareAndSet(slot, known, fresh) ? fresh : current();
    }

    private long minute() {
        return clock.millis() / 60_000;
    }

    /**
     * The counts of the latest minutes, oldest first.
     *
     * @param bins how many counts
     * @param width how many minutes each has
     */
    List<Integer> counts(Series series, int bins, int width) {
        long end = minute() + 1;
        List<Integer> counts = new ArrayList<>();
        for (long from = end - (long) bins * width; from < end; from += width) {
            int sum = 0;
            for (long minute = from; minute < from + width; minute++) {
                Minute known = ring.get((int) Math.floorMod(minute, (long) MINUTES));
                sum += known != null && known.number == minute ? known.counts.get(series.ordinal()) : 0;
            }
            counts.add(sum);
        }
        return counts;
    }
}
