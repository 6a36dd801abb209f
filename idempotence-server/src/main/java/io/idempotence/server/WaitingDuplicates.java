package io.idempotence.server;

import io.idempotence.http.Refusal;
import io.idempotence.internal.Millis;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.StorageKey;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The duplicates that wait for a first attempt to end. If it runs in this process, its completion ends their wait. If it runs in another
 * process, one poll of the storage serves all that wait here, with growing intervals. Waiting holds no thread.
 */
final class WaitingDuplicates implements AutoCloseable {
    private static final Duration FIRST_POLL = Duration.ofMillis(20);
    private static final Duration LONGEST_POLL = Duration.ofMillis(500);

    /** The decision for duplicates that still wait when this is closed. */
    static final Decision.Refuse CLOSED = new Decision.Refuse(Refusal.STORAGE_UNAVAILABLE, LONGEST_POLL);

    private final Scheduler polls;
    /** Separate from polls, which wait for the storage. */
    private final Scheduler timeouts;

    private final Predicate<StorageKey> runsHere;
    private final int limit;
    private final AtomicInteger count = new AtomicInteger();
    private final Map<Operation, Set<CompletableFuture<Decision.Substitute>>> waiting = new ConcurrentHashMap<>();

    /**
     * @param limit how many duplicates may wait at once
     * @param threads returns the thread factory for a thread name
     */
    WaitingDuplicates(Predicate<StorageKey> runsHere, int limit, Function<String, ThreadFactory> threads) {
        this.polls = new Scheduler(threads.apply("idempotence-polls"), 1);
        this.timeouts = new Scheduler(threads.apply("idempotence-timeouts"), 1);
        this.runsHere = runsHere;
        this.limit = limit;
    }

    /**
     * The operation that duplicates wait for. After a delete the key may belong to another request, whose response must not go to those who
     * waited before (P5).
     */
    private record Operation(StorageKey key, Fingerprint fingerprint) {}

    /**
     * Completes with a decision, or with {@code otherwise} if patience, room or threads run out.
     *
     * @param look reads the storage without leaving a claim behind; null means that the first attempt still runs
     */
    CompletableFuture<Decision.Substitute> await(
            ClaimRequest request,
            Duration patience,
            Decision.Substitute otherwise,
            Supplier<Decision.@Nullable Substitute> look) {
        if (count.incrementAndGet() > limit) {
            count.decrementAndGet();
            return CompletableFuture.completedFuture(otherwise);
        }
        Operation operation = new Operation(request.key(), request.fingerprint());
        CompletableFuture<Decision.Substitute> waiter = new CompletableFuture<>();
        boolean[] first = new boolean[1];
        Set<CompletableFuture<Decision.Substitute>> together = waiting.compute(operation, (key, before) -> {
            first[0] = before == null;
            Set<CompletableFuture<Decision.Substitute>> joined =
                    before == null ? ConcurrentHashMap.newKeySet() : before;
            joined.add(waiter);
            return joined;
        });
        waiter.whenComplete((decision, failure) -> {
            count.decrementAndGet();
            leave(operation, waiter);
        });
        try {
            endAfter(patience, waiter, otherwise);
            if (first[0]) {
                // Even if the first attempt runs here: it may have ended between this duplicate's claim and its entry.
                poll(operation, together, look, FIRST_POLL);
            }
        } catch (OutOfMemoryError noThread) {
            if (first[0]) {
                // The others count on its poll.
                complete(operation, otherwise);
            }
            waiter.complete(otherwise);
        }
        return waiter;
    }

    private void endAfter(
            Duration patience, CompletableFuture<Decision.Substitute> waiter, Decision.Substitute otherwise) {
        // Not completeOnTimeout: the JDK's thread for that outlives an undeployed application and keeps its classes.
        Future<?> timeout =
                timeouts.later(Duration.ofMillis(Millis.capped(patience)), () -> waiter.complete(otherwise));
        if (timeout != null) {
            waiter.whenComplete((decision, failure) -> timeout.cancel(false));
        }
    }

    private void leave(Operation operation, CompletableFuture<Decision.Substitute> waiter) {
        waiting.computeIfPresent(operation, (key, joined) -> {
            joined.remove(waiter);
            return joined.isEmpty() ? null : joined;
        });
    }

    private void poll(
            Operation operation,
            Set<CompletableFuture<Decision.Substitute>> together,
            Supplier<Decision.@Nullable Substitute> look,
            Duration delay) {
        Future<?> planned = polls.later(delay, () -> {
            // Duplicates that came after the last of these had left have a poll of their own.
            if (waiting.get(operation) == together) {
                Decision.Substitute decision = runsHere.test(operation.key) ? null : look.get();
                if (decision == null) {
                    // A fifth longer each time: the wait is at most a fifth longer than the first attempt ran, and a
                    // long attempt costs few polls.
                    Duration longer = delay.multipliedBy(6).dividedBy(5);
                    poll(operation, together, look, longer.compareTo(LONGEST_POLL) < 0 ? longer : LONGEST_POLL);
                } else {
                    complete(operation, decision);
                }
            }
        });
        if (planned == null) {
            complete(operation, CLOSED);
        }
    }

    /** Completes all waits for an operation. The waiting transports write their responses, not this thread. */
    void complete(StorageKey key, Fingerprint fingerprint, Decision.Substitute decision) {
        if (!waiting.isEmpty()) {
            complete(new Operation(key, fingerprint), decision);
        }
    }

    private void complete(Operation operation, Decision.Substitute decision) {
        Set<CompletableFuture<Decision.Substitute>> joined = waiting.remove(operation);
        if (joined != null) {
            joined.forEach(waiter -> waiter.complete(decision));
        }
    }

    /** Ends all waits. */
    @Override
    public void close() {
        // Polls end first: a duplicate that arrives now must not wait for a poll that will not run.
        polls.close();
        timeouts.close();
        waiting.keySet().forEach(operation -> complete(operation, CLOSED));
    }
}
