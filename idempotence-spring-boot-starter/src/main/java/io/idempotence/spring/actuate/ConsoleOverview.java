package io.idempotence.spring.actuate;

import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceRecord.State;
import java.time.Duration;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The overview that one walk over the records gives.
 *
 * @param counts the records of each state
 * @param urgent the uncertain records that are forgotten first
 * @param complete whether the walk came to its end in time; otherwise there are more records
 */
record ConsoleOverview(Map<State, Long> counts, List<IdempotenceRecord> urgent, boolean complete) {
    private static final int MOST = 50;
    private static final Duration LONGEST = Duration.ofSeconds(5);

    static ConsoleOverview of(IdempotenceAdmin admin) {
        long start = System.nanoTime();
        Map<State, Long> counts = new EnumMap<>(State.class);
        for (State state : State.values()) {
            counts.put(state, 0L);
        }
        // By key, because a storage may list a record twice.
        Map<String, IdempotenceRecord> uncertain = new TreeMap<>();
        Iterator<IdempotenceRecord> records = admin.list().iterator();
        boolean inTime = true;
        while (inTime && records.hasNext()) {
            IdempotenceRecord record = records.next();
            counts.merge(record.state(), 1L, Long::sum);
            if (record.isUncertain()) {
                uncertain.put(record.key().value(), record);
                if (uncertain.size() > 20 * MOST) {
                    uncertain.values().retainAll(mostUrgent(uncertain));
                }
            }
            inTime = System.nanoTime() - start < LONGEST.toNanos();
        }
        return new ConsoleOverview(counts, mostUrgent(uncertain), inTime);
    }

    private static List<IdempotenceRecord> mostUrgent(Map<String, IdempotenceRecord> uncertain) {
        return uncertain.values().stream()
                .sorted(Comparator.comparing(IdempotenceRecord::retentionLeft))
                .limit(MOST)
                .toList();
    }

    /** What the page says first. If only a part of the records was read, it does not say that nothing needs a decision. */
    String heading() {
        long known = uncertain();
        if (known == 0) {
            return complete ? "Nothing needs a decision" : "Not all records could be read";
        }
        String number = String.format(complete ? "%,d" : "At least %,d", known);
        return number + (known == 1 ? " record needs a decision" : " records need a decision");
    }

    long uncertain() {
        return counts.getOrDefault(State.ABANDONED, 0L) + counts.getOrDefault(State.UNKNOWN, 0L);
    }
}
