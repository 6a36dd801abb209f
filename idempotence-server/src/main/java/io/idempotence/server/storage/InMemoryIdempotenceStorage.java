package io.idempotence.server.storage;

import io.idempotence.server.storage.StoredRecord.Step;
import java.time.Clock;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BiFunction;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** The storage of {@link IdempotenceStorage#inMemory(int, Clock)}. Transitions are pure functions of {@link StoredRecord}. */
final class InMemoryIdempotenceStorage implements IdempotenceStorage {
    static final int DEFAULT_MAX_RECORDS = 100_000;

    private final ConcurrentHashMap<StorageKey, Entry> entries = new ConcurrentHashMap<>();
    private final Queue<Slot> slots = new ConcurrentLinkedQueue<>();
    private final AtomicInteger count = new AtomicInteger();
    private final ReentrantLock sweeping = new ReentrantLock();
    private final AtomicLong earliestExpiry = new AtomicLong(Long.MAX_VALUE);
    private final int maxRecords;
    private final Clock clock;

    InMemoryIdempotenceStorage(int maxRecords, Clock clock) {
        if (maxRecords < 1) {
            throw new IllegalArgumentException("maxRecords must be at least 1, got " + maxRecords);
        }
        this.maxRecords = maxRecords;
        this.clock = Objects.requireNonNull(clock, "clock");
    }

    /** A record's place in the queue. By identity: an ID that was deleted and claimed again has a new slot. */
    private static final class Slot {
        final StorageKey key;

        Slot(StorageKey key) {
            this.key = key;
        }
    }

    private record Entry(StoredRecord content, Slot slot) {}

    @Override
    public ClaimResult claim(ClaimRequest request) {
        return step(request.key(), (before, now) -> StoredRecord.claim(before, request, now));
    }

    @Override
    public WriteResult complete(Claim claim, byte[] result, Duration retention) {
        long millis = Millis.checked("retention", retention);
        return step(claim.key(), (before, now) -> StoredRecord.complete(before, claim, result, now + millis));
    }

    @Override
    public WriteResult completeProvisionally(Claim claim, byte[] result, Duration retention) {
        long millis = Millis.checked("retention", retention);
        return step(
                claim.key(), (before, now) -> StoredRecord.completeProvisionally(before, claim, result, now + millis));
    }

    @Override
    public WriteResult release(Claim claim, Duration retention) {
        long millis = Millis.checked("retention", retention);
        return step(claim.key(), (before, now) -> StoredRecord.release(before, claim, now + millis));
    }

    @Override
    public WriteResult markUnknown(Claim claim, Duration retention) {
        long millis = Millis.checked("retention", retention);
        return step(claim.key(), (before, now) -> StoredRecord.markUnknown(before, claim, now, now + millis));
    }

    @Override
    public WriteResult renew(Claim claim, Duration lease) {
        long millis = Millis.checked("lease", lease);
        return step(claim.key(), (before, now) -> StoredRecord.renew(before, claim, now + millis));
    }

    @Override
    public Optional<IdempotenceRecord> find(StorageKey key) {
        while (true) {
            Entry entry = entries.get(key);
            long now = clock.millis();
            // One that was replaced before the clock was read says nothing about that time.
            if (entries.get(key) == entry) {
                return entry == null || entry.content.expiresAt() <= now
                        ? Optional.empty()
                        : Optional.of(entry.content.seenAt(key, now));
            }
        }
    }

    @Override
    public Stream<IdempotenceRecord> list(String namespace) {
        String prefix = StorageKey.prefix(namespace);
        return entries.keySet().stream()
                .filter(key -> key.value().startsWith(prefix))
                .flatMap(key -> find(key).stream());
    }

    @Override
    public boolean resolve(StorageKey key, long fence, Resolution resolution, Duration retention) {
        long millis = Millis.checked("retention", retention);
        return step(key, (before, now) -> StoredRecord.resolve(before, fence, resolution, now, now + millis));
    }

    @Override
    public boolean delete(StorageKey key) {
        boolean[] lived = new boolean[1];
        entries.computeIfPresent(key, (k, entry) -> {
            lived[0] = entry.content.expiresAt() > clock.millis();
            count.decrementAndGet();
            return null;
        });
        return lived[0];
    }

    @Override
    public void close() {
        // nothing was opened
    }

    int queueLength() {
        return slots.size();
    }

    private <A> A step(StorageKey key, BiFunction<@Nullable StoredRecord, Long, Step<A>> transition) {
        Optional<A> answer = tryStep(key, transition);
        if (answer.isEmpty()) {
            sweepWhenFull();
            answer = tryStep(key, transition);
        }
        return answer.orElseThrow(() -> new StorageUnavailableException(
                "the in-memory storage is full of " + maxRecords
                        + " live records; raise maxRecords, shorten the retention, or use a storage outside the process",
                null));
    }

    /** Empty, with nothing changed, if a new record is needed and there is no room. */
    private <A> Optional<A> tryStep(StorageKey key, BiFunction<@Nullable StoredRecord, Long, Step<A>> transition) {
        Holder<A> holder = new Holder<>();
        entries.compute(key, (k, entry) -> {
            // The clock is read while the record is held: a thread that waited for it must not decide by a time before
            // its wait.
            long now = clock.millis();
            StoredRecord before = entry == null || entry.content.expiresAt() <= now ? null : entry.content;
            Step<A> step = transition.apply(before, now);
            StoredRecord after = step.after();
            if (after == null) {
                if (entry != null) {
                    count.decrementAndGet();
                }
                holder.answer = step.answer();
                return null;
            }
            if (entry == null) {
                if (count.incrementAndGet() > maxRecords) {
                    count.decrementAndGet();
                    return null;
                }
                holder.isNew = true;
            }
            holder.answer = step.answer();
            if (after.expiresAt() < earliestExpiry.get()) {
                earliestExpiry.accumulateAndGet(after.expiresAt(), Math::min);
            }
            Slot slot = entry == null ? new Slot(key) : entry.slot;
            if (entry == null) {
                slots.add(slot);
            }
            return new Entry(after, slot);
        });
        if (holder.isNew) {
            // Two looks for each new record: the queue is emptied faster than it is filled, without a thread and
            // without a scan.
            lookAtOldest();
            lookAtOldest();
        }
        return Optional.ofNullable(holder.answer);
    }

    private static final class Holder<A> {
        @Nullable
        A answer;

        boolean isNew;
    }

    private void lookAtOldest() {
        Slot slot = slots.poll();
        if (slot == null) {
            return;
        }
        Entry left = removeIfExpired(slot.key, clock.millis());
        if (left != null && left.slot == slot) {
            slots.add(slot);
        }
    }

    private @Nullable Entry removeIfExpired(StorageKey key, long now) {
        return entries.computeIfPresent(key, (k, entry) -> {
            if (entry.content.expiresAt() > now) {
                return entry;
            }
            count.decrementAndGet();
            return null;
        });
    }

    /** Scans for expired records, unless it is known that there is none: a full storage must not cost a scan for each claim. */
    private void sweepWhenFull() {
        sweeping.lock();
        try {
            long now = clock.millis();
            if (count.get() < maxRecords || now < earliestExpiry.get()) {
                return;
            }
            // Reset before the scan: a write during the scan lowers it again, and must not be overwritten after it.
            earliestExpiry.set(Long.MAX_VALUE);
            long earliest = Long.MAX_VALUE;
            for (StorageKey key : entries.keySet()) {
                Entry left = removeIfExpired(key, now);
                if (left != null) {
                    earliest = Math.min(earliest, left.content.expiresAt());
                }
            }
            earliestExpiry.accumulateAndGet(earliest, Math::min);
        } finally {
            sweeping.unlock();
        }
    }
}
