package io.idempotence.server;

import io.idempotence.http.Refusal;
import io.idempotence.server.storage.ClaimRequest;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.StorageKey;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Duplicates that wait for the first attempt to end (rule 17). Those of an execution in this process are told by it; for one in another process
 * the storage is polled, once for all that wait here, less and less often. Waiting holds no thread.
 */
final class Waiters implements AutoCloseable {
    private static final Duration FIRST_POLL = Duration.ofMillis(20);
    private static final Duration LONGEST_POLL = Duration.ofSeconds(1);

    private final Background background;
    private final Predicate<StorageKey> runsHere;
    private final int limit;
    private final AtomicInteger count = new AtomicInteger();
    private final Map<Operation, Set<CompletableFuture<Decision>>> waiting = new ConcurrentHashMap<>();

    /** Asks the storage, without leaving a claim behind: null means that the first attempt still runs. */
    private final Function<ClaimRequest, @Nullable Decision> look;

    Waiters(
            Background background,
            Predicate<StorageKey> runsHere,
            Function<ClaimRequest, @Nullable Decision> look,
            int limit) {
        this.background = background;
        this.runsHere = runsHere;
        this.look = look;
        this.limit = limit;
    }

    /** What is waited for. After a delete the key may belong to another request, whose answer is not for those who waited before (P5). */
    private record Operation(StorageKey key, Fingerprint fingerprint) {}

    /** The decision once there is one; {@code otherwise} if patience or room runs out. Never {@link Decision.Run}. */
    CompletableFuture<Decision> await(ClaimRequest request, Duration patience, Decision otherwise) {
        if (count.incrementAndGet() > limit) {
            count.decrementAndGet();
            return CompletableFuture.completedFuture(otherwise);
        }
        Operation operation = new Operation(request.key(), request.fingerprint());
        CompletableFuture<Decision> waiter = new CompletableFuture<>();
        Set<CompletableFuture<Decision>> fresh = ConcurrentHashMap.newKeySet();
        Set<CompletableFuture<Decision>> joined = waiting.compute(operation, (key, before) -> {
            Set<CompletableFuture<Decision>> all = before == null ? fresh : before;
            all.add(waiter);
            return all;
        });
        waiter.whenComplete((decision, failure) -> {
            count.decrementAndGet();
            leave(operation, waiter);
        });
        waiter.completeOnTimeout(otherwise, patience.toNanos(), TimeUnit.NANOSECONDS);
        if (joined == fresh) {
            // Even if it runs here: it may have ended between the claim that met it and the line that joined.
            poll(operation, request, joined, FIRST_POLL);
        }
        return waiter;
    }

    private void leave(Operation operation, CompletableFuture<Decision> waiter) {
        waiting.computeIfPresent(operation, (key, joined) -> {
            joined.remove(waiter);
            return joined.isEmpty() ? null : joined;
        });
    }

    /** One chain of polls for one set: those who join after it has emptied begin their own. */
    private void poll(
            Operation operation, ClaimRequest request, Set<CompletableFuture<Decision>> joined, Duration delay) {
        boolean planned = background.tryLater(delay, () -> {
            if (waiting.get(operation) == joined) {
                Decision decision = runsHere.test(operation.key) ? null : look.apply(request);
                if (decision == null) {
                    Duration doubled = delay.multipliedBy(2);
                    poll(operation, request, joined, doubled.compareTo(LONGEST_POLL) < 0 ? doubled : LONGEST_POLL);
                } else {
                    tell(operation, decision);
                }
            }
        });
        if (!planned) {
            tell(operation, closed());
        }
    }

    /** Tells everybody who waits for an operation. Their answers are written by whoever waits, not by this thread. */
    void tell(StorageKey key, Fingerprint fingerprint, Decision decision) {
        tell(new Operation(key, fingerprint), decision);
    }

    private void tell(Operation operation, Decision decision) {
        Set<CompletableFuture<Decision>> joined = waiting.remove(operation);
        if (joined != null) {
            joined.forEach(waiter -> waiter.complete(decision));
        }
    }

    private static Decision closed() {
        return new Decision.Refuse(Refusal.STORAGE_UNAVAILABLE, LONGEST_POLL);
    }

    /** Sends everybody away. */
    @Override
    public void close() {
        waiting.keySet().forEach(operation -> tell(operation, closed()));
    }
}
