package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.Collections;
import java.util.EnumMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The operators' view of a service's records: find one, list the uncertain ones, resolve one, delete one. No method runs an operation.
 * After a record is resolved as not applied, or deleted, the next attempt runs the operation.
 *
 * <p>An <i>uncertain</i> record is {@link State#ABANDONED} or {@link State#UNKNOWN}: later attempts are refused as
 * outcome-unknown until a person has checked the business data and resolves it (T17).
 *
 * <p>A record is found by its key. The same ID has separate keys for requests, {@link Idempotence#execute} and {@link
 * Idempotence#saveIfAbsent}: {@link #requestKey}, {@link #executeKey}, {@link #savedKey}. A key is a hash and cannot be turned back into
 * an ID.
 *
 * <p>Every method that calls the storage throws {@link StorageUnavailableException} if the storage fails. Unless {@link
 * StorageUnavailableException#nothingWritten()} is true, a change may then have happened or not: look the record up again. Every method
 * that takes a {@link StorageKey} throws {@link IllegalArgumentException} for a key of another namespace. Immutable and thread-safe.
 * Default retention of a resolved record: 24 hours.
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
     * The view of one service's records.
     *
     * @param storage where the records are; never closed here
     * @param namespace the service's namespace, as in {@link Idempotence.Builder#namespace}; {@code default} unless set there
     * @throws IllegalArgumentException if {@code namespace} is not a valid one
     */
    public static IdempotenceAdmin of(IdempotenceStorage storage, String namespace) {
        return new IdempotenceAdmin(
                Objects.requireNonNull(storage, "storage"),
                StorageKey.checkedNamespace(namespace),
                IdempotencePolicy.defaults().retention());
    }

    /** The service's namespace. */
    public String namespace() {
        return namespace;
    }

    /**
     * The same view with another retention for records that it resolves. It should be that of the operation's policy.
     *
     * @param retention how long a record is kept at least after it is resolved; at least 1 ms
     * @throws IllegalArgumentException if {@code retention} is under 1 ms
     */
    public IdempotenceAdmin withRetention(Duration retention) {
        if (retention.compareTo(Duration.ofMillis(1)) < 0) {
            throw new IllegalArgumentException("retention must be at least 1 ms, got " + retention);
        }
        return new IdempotenceAdmin(storage, namespace, retention);
    }

    /**
     * The key of a request's record.
     *
     * @param scope what the filter's {@code RequestScope} returns for the request. By default that is {@code principal:} and the
     *     principal's name, or the empty string for requests without a principal
     */
    public StorageKey requestKey(IdempotenceId id, String scope) {
        return RecordKind.REQUEST.key(namespace, IdempotentCall.of(id).withScope(scope));
    }

    /** The key of the record of an {@link Idempotence#execute}. */
    public StorageKey executeKey(IdempotenceId id) {
        return executeKey(IdempotentCall.of(id));
    }

    /**
     * The key of the record of an {@link Idempotence#execute} with an operation.
     *
     * @param call the call's ID, operation and scope; the fingerprint is ignored
     */
    public StorageKey executeKey(IdempotentCall call) {
        return RecordKind.EXECUTE.key(namespace, call);
    }

    /** The key of the record of an {@link Idempotence#saveIfAbsent}. Its state is in progress until it is deleted or its retention ends. */
    public StorageKey savedKey(IdempotenceId id) {
        return RecordKind.SAVE.key(namespace, IdempotentCall.of(id));
    }

    /**
     * Reads one record.
     *
     * @return the record, or empty if there is none
     * @throws CorruptRecordException if it cannot be read
     */
    public Optional<IdempotenceRecord> find(StorageKey key) {
        return storage.find(checked(key));
    }

    /**
     * Lists all records of the service, in no particular order. They are read page by page while the stream is consumed. A record may be
     * listed twice; see {@link IdempotenceStorage#list} for records that are created or removed meanwhile.
     *
     * @return a stream that need not be closed; may throw {@link StorageUnavailableException} while it is consumed
     */
    public Stream<IdempotenceRecord> list() {
        return storage.list(namespace);
    }

    /**
     * Lists the records that have been abandoned or unknown for some time, each once. Otherwise as {@link #list()}.
     *
     * @param longerThan for how long at least; zero lists all of them
     * @return a stream that need not be closed
     */
    public Stream<IdempotenceRecord> listUncertain(Duration longerThan) {
        Objects.requireNonNull(longerThan, "longerThan");
        return list().filter(
                        record -> record.isUncertain() && record.uncertainFor().compareTo(longerThan) >= 0)
                .filter(firstSight());
    }

    /** A filter for records that a storage lists twice. It remembers only uncertain ones, which are few. */
    private static Predicate<IdempotenceRecord> firstSight() {
        Set<StorageKey> seen = Collections.synchronizedSet(new HashSet<>());
        return record -> seen.add(record.key());
    }

    /**
     * Counts all records, reading each once.
     *
     * @param progress called with each record as it is counted
     * @return the counts; a record that is listed twice is counted twice
     */
    public Stats stats(Consumer<IdempotenceRecord> progress) {
        Objects.requireNonNull(progress, "progress");
        Map<State, Long> counts = new EnumMap<>(State.class);
        for (State state : State.values()) {
            counts.put(state, 0L);
        }
        IdempotenceRecord[] oldest = new IdempotenceRecord[1];
        list().sequential().forEach(record -> {
            counts.merge(record.state(), 1L, Long::sum);
            if (record.isUncertain()
                    && (oldest[0] == null || record.uncertainFor().compareTo(oldest[0].uncertainFor()) > 0)) {
                oldest[0] = record;
            }
            progress.accept(record);
        });
        return new Stats(counts, Optional.ofNullable(oldest[0]));
    }

    /**
     * Resolves an uncertain record in the state in which a person saw it, by compare-and-set. If it has changed since, nothing is done.
     *
     * @param seen the record as the person saw it
     * @param resolution what the business data shows
     * @return whether the record was resolved, or why not
     * @throws CorruptRecordException if it cannot be read now
     */
    public Resolved resolve(IdempotenceRecord seen, Resolution resolution) {
        Objects.requireNonNull(resolution, "resolution");
        StorageKey key = checked(seen.key());
        if (!seen.isUncertain()) {
            return Resolved.NOT_UNCERTAIN;
        }
        if (changing(() -> storage.resolve(key, seen.fence(), resolution, retention))) {
            return Resolved.DONE;
        }
        // A driver that got no reply may have sent it twice, and this is the second reply.
        State resolved = resolution == Resolution.APPLIED ? State.COMPLETED : State.RELEASED;
        return storage.find(key)
                        .filter(now -> now.fence() == seen.fence() && now.state() == resolved)
                        .isPresent()
                ? Resolved.ALREADY
                : Resolved.CHANGED;
    }

    /**
     * Forgets an ID, whatever its state, if its record is still as a person saw it, by compare-and-set. The next attempt runs as if it
     * were the first. To resolve an uncertain record, call {@link #resolve} instead.
     *
     * @param seen the record as the person saw it
     * @return whether the record was deleted, or what it is now
     */
    public Deleted delete(IdempotenceRecord seen) {
        return deleted(checked(seen.key()), seen);
    }

    /**
     * Forgets an ID whose record cannot be read. Otherwise as {@link #delete}.
     *
     * @return whether the record was deleted, or what it is now
     */
    public Deleted deleteUnreadable(StorageKey key) {
        return deleted(checked(key), null);
    }

    private Deleted deleted(StorageKey key, @Nullable IdempotenceRecord seen) {
        try {
            return changing(() -> storage.deleteUnchanged(key, seen))
                    ? new Deleted(true, Optional.empty())
                    : new Deleted(false, storage.find(key));
        } catch (CorruptRecordException e) {
            return new Deleted(false, Optional.empty(), Optional.of(String.valueOf(e.getMessage())));
        }
    }

    private static boolean changing(BooleanSupplier change) {
        try {
            return change.getAsBoolean();
        } catch (StorageUnavailableException e) {
            if (e.nothingWritten()) {
                throw e;
            }
            throw new StorageUnavailableException(
                    e.getMessage() + "; the result is unknown: look the record up again before you repeat this", e);
        }
    }

    /** Records of other services, and keys that belong to no record, must not be touched. */
    private StorageKey checked(StorageKey key) {
        if (!key.value().startsWith(StorageKey.prefix(namespace))) {
            throw new IllegalArgumentException("the key is not one of namespace '" + namespace
                    + "', whose keys begin with " + StorageKey.prefix(namespace));
        }
        return key;
    }

    /** The result of resolving a record. */
    public enum Resolved {
        /** The record is resolved. */
        DONE,
        /**
         * The record already is as requested: completed, or released. Somebody was faster, perhaps its owner, or the reply to this very
         * resolution was lost.
         */
        ALREADY,
        /** There is no record with this key. */
        NOT_FOUND,
        /** The record is neither abandoned nor unknown: there is nothing to resolve. */
        NOT_UNCERTAIN,
        /** The record has changed otherwise since it was read, or is gone. Nothing was done. Read it again. */
        CHANGED;

        /** {@return whether the record is resolved now: true for {@link #DONE} and {@link #ALREADY}} */
        public boolean isDone() {
            return this == DONE || this == ALREADY;
        }

        /**
         * What tools say about it.
         *
         * @param as the resolution that was asked for
         * @return a sentence without a capital letter and a full stop
         */
        public String message(Resolution as) {
            boolean applied = as == Resolution.APPLIED;
            return switch (this) {
                case DONE ->
                    applied
                            ? "resolved as applied: it never runs again; later attempts are refused as result-unavailable"
                            : "resolved as not applied: the next attempt runs the operation";
                case ALREADY ->
                    applied
                            ? "already completed, perhaps by its owner: it never runs again"
                            : "already released: the next attempt runs the operation";
                case NOT_FOUND -> "no such record: its retention is over, or it belongs to another namespace";
                case NOT_UNCERTAIN -> "nothing was done: only an abandoned or unknown record can be resolved";
                case CHANGED -> "nothing was done: the record has changed since it was read; read it again";
            };
        }
    }

    /**
     * The result of deleting a record.
     *
     * @param isDone whether this call deleted the record. If not, it was not found as it was read; a driver that sends a call twice may have
     *     deleted it before
     * @param now the record as it is now, if it has changed since it was read; empty if it was deleted, is gone, or cannot be read now
     * @param unreadable why it cannot be read now; empty otherwise
     */
    public record Deleted(boolean isDone, Optional<IdempotenceRecord> now, Optional<String> unreadable) {
        /** The result for a record that can be read, or is gone. */
        public Deleted(boolean isDone, Optional<IdempotenceRecord> now) {
            this(isDone, now, Optional.empty());
        }

        /**
         * What tools say about it.
         *
         * @return a sentence without a capital letter and a full stop
         */
        public String message() {
            if (isDone) {
                return "deleted: the next attempt runs the operation";
            }
            if (unreadable.isPresent()) {
                return "nothing was deleted: the record is unreadable now: " + unreadable.get() + "; read it again";
            }
            return now.map(record -> "nothing was deleted: the record has changed since it was read, and is "
                            + record.state().label() + " now; read it again")
                    .orElse("nothing was deleted: there is no such record any more");
        }

        /**
         * What tools print as JSON.
         *
         * @return {@code deleted} and {@code message}; and {@code record}, unless it was deleted, is gone, or cannot be read now
         */
        public Map<String, Object> fields() {
            Map<String, Object> fields = new LinkedHashMap<>();
            fields.put("deleted", isDone);
            fields.put("message", message());
            now.ifPresent(record -> fields.put("record", record.fields()));
            return fields;
        }
    }

    /**
     * The counts of a service's records.
     *
     * @param counts how many records are in each state; every state has a count
     * @param oldestUncertain the record that has been abandoned or unknown longest, if there is any
     */
    public record Stats(Map<State, Long> counts, Optional<IdempotenceRecord> oldestUncertain) {
        /** Copies the counts. */
        public Stats {
            Map<State, Long> copy = new EnumMap<>(State.class);
            copy.putAll(counts);
            counts = Collections.unmodifiableMap(copy);
        }
    }
}
