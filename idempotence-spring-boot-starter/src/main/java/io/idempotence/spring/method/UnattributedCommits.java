package io.idempotence.spring.method;

import java.util.Collections;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The commits on threads that are part of no execution. Nobody knows which execution they belong to, so each counts as an effect of every
 * asynchronous execution that it may be part of. Thread-safe.
 */
final class UnattributedCommits {
    private final AtomicLong ended = new AtomicLong();
    /** The transactions whose commit was sent to the database, and whose outcome is not known yet. */
    private final Set<Object> committing = Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));

    /** How many have ended. */
    long ended() {
        return ended.get();
    }

    /** Whether there was one since {@link #ended()} had a value, or is one now. */
    boolean anySince(long before) {
        // In this order, because a commit is counted before it leaves the set.
        return !committing.isEmpty() || ended() != before;
    }

    /** Notes that a commit is about to be sent to the database. */
    void begin(Object transaction) {
        committing.add(transaction);
    }

    /** Notes the end of a commit. Does nothing if it did not {@linkplain #begin begin} here. */
    void end(Object transaction, boolean mayHaveTakenEffect) {
        if (mayHaveTakenEffect && committing.contains(transaction)) {
            ended.incrementAndGet();
        }
        committing.remove(transaction);
    }
}
