package io.idempotence.server.storage;

import io.idempotence.internal.Millis;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.StoredRecord.Phase;
import io.idempotence.server.storage.StoredRecord.Step;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.Objects;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BiFunction;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** The storage of {@link IdempotenceStorage#inMemory(int, long, Clock)}. Transitions are pure functions of {@link StoredRecord}. */
final class InMemoryIdempotenceStorage implements IdempotenceStorage {
    static final int DEFAULT_MAX_RECORDS = 100_000;

    /** The estimated size of a record without its result: keys, tokens, map and queue entries, rounded up. */
    static final int BYTES_PER_RECORD = 512;

    /** How much a claim grows when its completion is recorded without a result. */
    private static final int BYTES_OF_NO_RESULT = ClaimResult.noResult().length;

    private final ConcurrentHashMap<StorageKey, RecordInSlot> entries = new ConcurrentHashMap<>();
    private final Queue<Slot> slots = new ConcurrentLinkedQueue<>();
    private final AtomicInteger count = new AtomicInteger();
    private final AtomicLong bytes = new AtomicLong();
    private final ReentrantLock sweeping = new ReentrantLock();
    private final AtomicLong earliestExpiry = new AtomicLong(Long.MAX_VALUE);
    private final int maxRecords;
    private final long maxBytes;
    /** The limit for claims. The rest is for the results of running executions. */
    private final long maxBytesForClaims;

    private final Clock clock;

    InMemoryIdempotenceStorage(int maxRecords, long maxBytes, Clock clock) {
        if (maxRecords < 1) {
            throw new IllegalArgumentException("maxRecords must be at least 1, got " + maxRecords);
        }
        if (maxBytes < 8 * BYTES_PER_RECORD) {
            throw new IllegalArgumentException(
                    "maxBytes must be at least " + 8 * BYTES_PER_RECORD + ", got " + maxBytes);
        }
        this.maxRecords = maxRecords;
        this.maxBytes = maxBytes;
        this.maxBytesForClaims = maxBytes - maxBytes / 8;
        this.clock = Objects.requireNonNull(clock, "clock");
    }

    /** A quarter of the heap, to leave room for the rest of the application. */
    static long defaultMaxBytes() {
        return Math.max(8 * BYTES_PER_RECORD, Runtime.getRuntime().maxMemory() / 4);
    }

    /** A clock that is set once and then only goes forward, regardless of the host's wall clock. UTC; thread-safe. */
    static final class MonotonicClock extends Clock {
        private final Instant start = Instant.now();
        private final long startNanos = System.nanoTime();

        @Override
        public Instant instant() {
            return start.plusNanos(System.nanoTime() - startNanos);
        }

        @Override
        public ZoneId getZone() {
            return ZoneOffset.UTC;
        }

        @Override
        public Clock withZone(ZoneId zone) {
            throw new UnsupportedOperationException("leases and retention have no time zone");
        }
    }

    /** A record's place in the queue, compared by identity: an ID that was deleted and claimed again has a new slot. */
    private static final class Slot {
        final StorageKey key;

        Slot(StorageKey key) {
            this.key = key;
        }
    }

    private record RecordInSlot(StoredRecord content, Slot slot) {
        long weight() {
            return weigh(content);
        }
    }

    private static long weigh(StoredRecord record) {
        byte[] result = record.result();
        return BYTES_PER_RECORD + (result == null ? 0L : result.length);
    }

    @Override
    public ClaimResult claim(ClaimRequest request) {
        return step(request.key(), (before, now) -> StoredRecord.claim(before, request, now));
    }

    @Override
    public WriteResult complete(Claim claim, byte[] result, Duration retention) {
        return finish(claim, Phase.COMPLETED, result, retention);
    }

    @Override
    public WriteResult completeProvisionally(Claim claim, byte[] result, Duration retention) {
        return finish(claim, Phase.PROVISIONAL, result, retention);
    }

    @Override
    public WriteResult release(Claim claim, Duration retention) {
        return finish(claim, Phase.RELEASED, null, retention);
    }

    @Override
    public WriteResult markUnknown(Claim claim, Duration retention) {
        return finish(claim, Phase.UNKNOWN, null, retention);
    }

    private WriteResult finish(Claim claim, Phase phase, byte @Nullable [] result, Duration retention) {
        long millis = Millis.checked("retention", retention);
        return step(claim.key(), (before, now) -> StoredRecord.finish(before, claim, phase, result, now, now + millis));
    }

    @Override
    public WriteResult renew(Claim claim, Duration lease) {
        long millis = Millis.checked("lease", lease);
        return step(claim.key(), (before, now) -> StoredRecord.renew(before, claim, now + millis));
    }

    @Override
    public Optional<IdempotenceRecord> find(StorageKey key) {
        Holder<IdempotenceRecord> seen = new Holder<>();
        entries.computeIfPresent(key, (k, entry) -> {
            // Inside, so that it waits for a change that has read the clock and is not visible yet.
            long now = clock.millis();
            if (entry.content.expiresAt() > now) {
                seen.reply = entry.content.seenAt(key, now);
            }
            return entry;
        });
        return Optional.ofNullable(seen.reply);
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
        return delete(key, record -> true);
    }

    /** {@inheritDoc} Every record here can be read. */
    @Override
    public boolean deleteUnchanged(StorageKey key, @Nullable IdempotenceRecord seen) {
        return seen != null && delete(key, seen::isUnchanged);
    }

    private boolean delete(StorageKey key, Predicate<IdempotenceRecord> condition) {
        boolean[] lived = new boolean[1];
        entries.computeIfPresent(key, (k, entry) -> {
            long now = clock.millis();
            boolean lives = entry.content.expiresAt() > now;
            if (lives && !condition.test(entry.content.seenAt(key, now))) {
                return entry;
            }
            forget(entry);
            lived[0] = lives;
            return null;
        });
        return lived[0];
    }

    @Override
    public void close() {
        // There are no resources to close.
    }

    int queueLength() {
        return slots.size();
    }

    long bytes() {
        return bytes.get();
    }

    private void forget(RecordInSlot entry) {
        count.decrementAndGet();
        bytes.addAndGet(-entry.weight());
    }

    private <A> A step(StorageKey key, BiFunction<@Nullable StoredRecord, Long, Step<A>> transition) {
        Optional<A> reply = tryStep(key, transition, false);
        if (reply.isEmpty()) {
            sweepWhenFull();
            reply = tryStep(key, transition, true);
        }
        return reply.orElseThrow(() -> StorageUnavailableException.refused(
                "the in-memory storage is full of " + count.get() + " live records with " + bytes.get()
                        + " bytes (maxRecords "
                        + maxRecords + ", maxBytes " + maxBytes
                        + "); raise them, shorten the retention, or use a storage outside"
                        + " the process",
                null));
    }

    /**
     * Applies a transition. Returns empty and changes nothing if there is no room for a new record, or for a result unless {@code
     * withoutResult}. With {@code withoutResult} a completion is recorded without its result, because it must never run again.
     */
    private <A> Optional<A> tryStep(
            StorageKey key, BiFunction<@Nullable StoredRecord, Long, Step<A>> transition, boolean withoutResult) {
        Holder<A> holder = new Holder<>();
        entries.compute(key, (k, entry) -> {
            // The clock is read while the record is locked:
            // a thread that waited for the lock must not decide by a time before its wait.
            long now = clock.millis();
            StoredRecord before = entry == null || entry.content.expiresAt() <= now ? null : entry.content;
            Step<A> step = transition.apply(before, now);
            StoredRecord after = step.after();
            if (after == null) {
                if (entry != null) {
                    forget(entry);
                }
                holder.reply = step.reply();
                return null;
            }
            if (entry == null && count.incrementAndGet() > maxRecords) {
                count.decrementAndGet();
                return null;
            }
            if (!hasTakenRoom(entry, after)) {
                after = withoutResult && after.result() != null ? after.withoutResult() : after;
                if (!withoutResult || !hasTakenRoom(entry, after)) {
                    if (entry == null) {
                        count.decrementAndGet();
                    }
                    return entry;
                }
            }
            holder.isNew = entry == null;
            holder.reply = step.reply();
            if (after.expiresAt() < earliestExpiry.get()) {
                earliestExpiry.accumulateAndGet(after.expiresAt(), Math::min);
            }
            Slot slot = entry == null ? new Slot(key) : entry.slot;
            if (entry == null) {
                slots.add(slot);
            }
            return new RecordInSlot(after, slot);
        });
        if (holder.isNew) {
            // Two checks for each new record empty the queue faster than it is filled, without a thread or a scan.
            lookAtOldest();
            lookAtOldest();
        }
        return Optional.ofNullable(holder.reply);
    }

    /** Reserves what a record needs beyond the one that it replaces. A record that shrinks or only changes its state always fits. */
    private boolean hasTakenRoom(@Nullable RecordInSlot before, StoredRecord after) {
        long more = weigh(after) - (before == null ? 0 : before.weight());
        long limit = after.phase() == StoredRecord.Phase.CLAIMED ? maxBytesForClaims : maxBytes;
        if (bytes.addAndGet(more) > limit && more > BYTES_OF_NO_RESULT) {
            bytes.addAndGet(-more);
            return false;
        }
        return true;
    }

    private static final class Holder<A> {
        @Nullable
        A reply;

        boolean isNew;
    }

    private void lookAtOldest() {
        Slot slot = slots.poll();
        if (slot == null) {
            return;
        }
        RecordInSlot left = removeIfExpired(slot.key, clock.millis());
        if (left != null && left.slot == slot) {
            slots.add(slot);
        }
    }

    private @Nullable RecordInSlot removeIfExpired(StorageKey key, long now) {
        return entries.computeIfPresent(key, (k, entry) -> {
            if (entry.content.expiresAt() > now) {
                return entry;
            }
            forget(entry);
            return null;
        });
    }

    /** Scans for expired records, unless there is none: a full storage must not cost a scan for each claim. */
    private void sweepWhenFull() {
        sweeping.lock();
        try {
            long now = clock.millis();
            if (now < earliestExpiry.get()) {
                return;
            }
            // Reset before the scan, because a write during the scan may lower it again.
            earliestExpiry.set(Long.MAX_VALUE);
            long earliest = Long.MAX_VALUE;
            for (StorageKey key : entries.keySet()) {
                RecordInSlot left = removeIfExpired(key, now);
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
