package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.RecordState;
import io.idempotence.server.storage.Resolution;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.Collections;
import java.util.EnumMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.stream.Stream;

/**
 * What the people who run a service do with its records: find one, list the uncertain ones, end the uncertainty, delete one. Nothing here
 * runs an operation; a record that is resolved as not applied, or deleted, lets the next attempt run it.
 *
 * <p>An <i>uncertain</i> record is {@link RecordState#ABANDONED} or {@link RecordState#UNKNOWN}: later attempts are refused as
 * outcome-unknown until a person has looked at the business data and resolves it (T17).
 *
 * <p>A record is found by its key. Requests, {@link Idempotence#execute} and {@link Idempotence#saveIfAbsent} keep their IDs
 * apart, so each has a key of its own: {@link #requestKey}, {@link #executeKey}, {@link #savedKey}. A key cannot be turned back
 * into an ID.
 *
 * <p>Every method that asks the storage throws {@link StorageUnavailableException} if the storage cannot say; a change may or may
 * not have happened then. Every method that takes a {@link StorageKey} throws {@link IllegalArgumentException} for a key of
 * another namespace. Immutable and thread-safe. Default retention of a resolved record: 24 hours.
 */
public final class IdempotenceAdmin {
    private final IdempotenceStorage storage;
    private final String namespace;
    private final Duration retention;

    private IdempotenceAdmin(IdempotenceStorage storage, String namespace, Duration retention) {
        this.storage = storage;
        this.namespace = namespace;
        this.retention = retention;
    }

    /**
     * The records of one service.
     *
     * @param storage where they are; never closed here
     * @param namespace the service, as given to {@link Idempotence.Builder#namespace}; {@code default} if it was not given
     * @return a new instance
     * @throws IllegalArgumentException if {@code namespace} is not of its form
     */
    public static IdempotenceAdmin of(IdempotenceStorage storage, String namespace) {
        return new IdempotenceAdmin(
                Objects.requireNonNull(storage, "storage"),
                StorageKey.checkedNamespace(namespace),
                IdempotencePolicy.defaults().retention());
    }

    /**
     * The same with another retention of what is resolved from now on. It should be that of the operation's policy.
     *
     * @param retention how long a record lives after it was resolved, unless it would have lived longer anyway; at least 1 ms
     * @return a new instance
     * @throws IllegalArgumentException if {@code retention} is under 1 ms
     */
    public IdempotenceAdmin withRetention(Duration retention) {
        if (retention.compareTo(Duration.ofMillis(1)) < 0) {
            throw new IllegalArgumentException("retention must be at least 1 ms, got " + retention);
        }
        return new IdempotenceAdmin(storage, namespace, retention);
    }

    /**
     * Where the record of a request is.
     *
     * @param id the ID
     * @param scope whose ID it is: what the filter's {@code RequestScope} gives. By default that is {@code principal:} and the
     *     principal's name, and the empty string for requests without a principal
     * @return the key
     */
    public StorageKey requestKey(IdempotenceId id, String scope) {
        return RecordKind.REQUEST.key(namespace, IdempotentCall.of(id).withScope(scope));
    }

    /**
     * Where the record of an {@link Idempotence#execute} is.
     *
     * @param id the ID
     * @return the key
     */
    public StorageKey executeKey(IdempotenceId id) {
        return executeKey(IdempotentCall.of(id));
    }

    /**
     * Where the record of an {@link Idempotence#execute} of an operation is.
     *
     * @param call its ID, operation and scope; the fingerprint does not matter
     * @return the key
     */
    public StorageKey executeKey(IdempotentCall call) {
        return RecordKind.EXECUTE.key(namespace, call);
    }

    /**
     * Where the record of an {@link Idempotence#saveIfAbsent} is. It is in progress until it is deleted or retention ends.
     *
     * @param id the ID
     * @return the key
     */
    public StorageKey savedKey(IdempotenceId id) {
        return RecordKind.SAVE.key(namespace, IdempotentCall.of(id));
    }

    /**
     * Looks at one record.
     *
     * @param key where it lives
     * @return the record, or empty if there is none
     * @throws CorruptRecordException if it cannot be read
     */
    public Optional<IdempotenceRecord> find(StorageKey key) {
        return storage.find(checked(key));
    }

    /**
     * All records of the service, in no particular order, read page by page while the stream is consumed. See {@link
     * IdempotenceStorage#list} for what a walk sees of records that come and go; one may be listed twice.
     *
     * @return a stream that need not be closed; may throw {@link StorageUnavailableException} while it is consumed
     */
    public Stream<IdempotenceRecord> list() {
        return storage.list(namespace);
    }

    /**
     * The records that have been abandoned or unknown for some time, each once. As {@link #list()} otherwise.
     *
     * @param longerThan how long at least; zero for all of them
     * @return a stream that need not be closed
     */
    public Stream<IdempotenceRecord> listUncertain(Duration longerThan) {
        Objects.requireNonNull(longerThan, "longerThan");
        return list().filter(
                        record -> isUncertain(record) && uncertainFor(record).compareTo(longerThan) >= 0)
                .filter(firstSight());
    }

    /** A storage may list a record twice; only uncertain ones, which are few, are remembered. */
    private static Predicate<IdempotenceRecord> firstSight() {
        Set<StorageKey> seen = Collections.synchronizedSet(new HashSet<>());
        return record -> seen.add(record.key());
    }

    /**
     * Counts all records in one walk.
     *
     * @param progress is given each record as it is counted
     * @return the counts; a record that the storage lists twice is counted twice
     */
    public Stats stats(Consumer<IdempotenceRecord> progress) {
        Objects.requireNonNull(progress, "progress");
        Map<RecordState, Long> counts = new EnumMap<>(RecordState.class);
        for (RecordState state : RecordState.values()) {
            counts.put(state, 0L);
        }
        IdempotenceRecord[] oldest = new IdempotenceRecord[1];
        list().sequential().forEach(record -> {
            counts.merge(record.state(), 1L, Long::sum);
            if (isUncertain(record)
                    && (oldest[0] == null || uncertainFor(record).compareTo(uncertainFor(oldest[0])) > 0)) {
                oldest[0] = record;
            }
            progress.accept(record);
        });
        return new Stats(counts, Optional.ofNullable(oldest[0]));
    }

    /**
     * Ends the uncertainty about a record, by compare-and-set on what is there now (T17).
     *
     * @param key where it lives
     * @param resolution what was found out in the business data
     * @return what became of it
     * @throws CorruptRecordException if it cannot be read
     */
    public Resolved resolve(StorageKey key, Resolution resolution) {
        Objects.requireNonNull(resolution, "resolution");
        return find(key).map(record -> resolve(record, resolution)).orElse(Resolved.NOT_FOUND);
    }

    /**
     * Ends the uncertainty about a record that a person has looked at, by compare-and-set: whoever acted since wins.
     *
     * @param seen the record as it was looked at
     * @param resolution what was found out in the business data
     * @return what became of it
     * @throws CorruptRecordException if it cannot be read now
     */
    public Resolved resolve(IdempotenceRecord seen, Resolution resolution) {
        Objects.requireNonNull(resolution, "resolution");
        StorageKey key = checked(seen.key());
        if (!isUncertain(seen)) {
            return Resolved.NOT_UNCERTAIN;
        }
        if (storage.resolve(key, seen.fence(), resolution, retention)) {
            return Resolved.DONE;
        }
        // A driver that got no reply may have sent it twice, and this is the second answer.
        RecordState resolved = resolution == Resolution.APPLIED ? RecordState.COMPLETED : RecordState.RELEASED;
        return storage.find(key)
                        .filter(now -> now.fence() == seen.fence() && now.state() == resolved)
                        .isPresent()
                ? Resolved.ALREADY
                : Resolved.CHANGED;
    }

    /**
     * Forgets an ID, whatever its state and even if its record is corrupt: the next attempt runs as if it were the first. Not the
     * way to end an uncertainty: {@link #resolve} is.
     *
     * @param key where the record lives
     * @return whether there was a record
     */
    public boolean delete(StorageKey key) {
        return storage.delete(checked(key));
    }

    /**
     * Whether a person has to look into a record.
     *
     * @param record any
     * @return true if it is abandoned or unknown
     */
    public static boolean isUncertain(IdempotenceRecord record) {
        return record.state() == RecordState.ABANDONED || record.state() == RecordState.UNKNOWN;
    }

    /**
     * How long a record has been abandoned or unknown, by the storage's clock.
     *
     * @param record any
     * @return the time; zero if it is neither
     */
    public static Duration uncertainFor(IdempotenceRecord record) {
        Duration since = record.leaseLeft().negated();
        return isUncertain(record) && !since.isNegative() ? since : Duration.ZERO;
    }

    /** The record of another service, or a key that is no record's at all, is not ours to touch. */
    private StorageKey checked(StorageKey key) {
        if (!key.value().startsWith(StorageKey.prefix(namespace))) {
            throw new IllegalArgumentException("the key is not one of namespace '" + namespace
                    + "', whose keys begin with " + StorageKey.prefix(namespace));
        }
        return key;
    }

    /** What became of a record that was to be resolved. */
    public enum Resolved {
        /** It is resolved now. */
        DONE,
        /**
         * It is as the resolution says already: completed, or given back. Somebody was faster, its owner perhaps, or the reply to
         * this very resolution was lost.
         */
        ALREADY,
        /** There is no such record. */
        NOT_FOUND,
        /** It is neither abandoned nor unknown: there is nothing to resolve. */
        NOT_UNCERTAIN,
        /** It has changed otherwise since it was looked at, or is gone: nothing was done. Look again. */
        CHANGED
    }

    /**
     * A service's records, counted.
     *
     * @param counts how many records are in each state; every state has a count
     * @param oldestUncertain the record that has been abandoned or unknown longest, if there is any
     */
    public record Stats(Map<RecordState, Long> counts, Optional<IdempotenceRecord> oldestUncertain) {
        /** Copies the counts. */
        public Stats {
            Map<RecordState, Long> copy = new EnumMap<>(RecordState.class);
            copy.putAll(counts);
            counts = Collections.unmodifiableMap(copy);
        }
    }
}
