package io.idempotence.spring.actuate;

import io.idempotence.IdempotenceId;
import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.IdempotenceAdmin.Resolved;
import io.idempotence.server.IdempotentCall;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.StorageKey;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** The records of the service in the words of the operator's tool. */
final class RecordsView {
    private final IdempotenceAdmin admin;

    RecordsView(IdempotenceAdmin admin) {
        this.admin = admin;
    }

    /**
     * The scope of an ID: to whom it belongs. At most one of {@code principal} and {@code scope} is given.
     *
     * @param operation the operation of an {@code execute}; a request has none
     */
    record IdOwner(
            @Nullable String principal,
            @Nullable String scope,
            @Nullable String operation) {
        IdOwner {
            if (principal != null && scope != null) {
                throw new IllegalArgumentException(
                        "principal NAME is short for scope principal:NAME: give one of them");
            }
            if (principal != null && operation != null) {
                throw new IllegalArgumentException("only requests have a principal, and only executions an operation");
            }
        }

        private String scopeOrEmpty() {
            return principal != null ? "principal:" + principal : scope == null ? "" : scope;
        }
    }

    /** A record, and the use of the ID that it belongs to: {@code request}, {@code execute} or {@code saved}. */
    record FoundRecord(String kind, IdempotenceRecord record) {}

    /** A record that cannot be read, and why. */
    record Unreadable(String kind, StorageKey key, String why) {}

    /** The records of an ID. One that cannot be read may be that of an operation which took effect, so it is never left out. */
    record AllOfId(List<FoundRecord> records, List<Unreadable> unreadable) {}

    /**
     * Finds the records of an ID. Each use of the same ID has a record of its own.
     *
     * @throws CorruptRecordException if there are some, and none of them can be read
     */
    AllOfId find(String id, IdOwner owner) {
        IdempotenceId checked = new IdempotenceId(id);
        Map<String, StorageKey> keys = new LinkedHashMap<>();
        if (owner.operation() == null) {
            keys.put("request", admin.requestKey(checked, owner.scopeOrEmpty()));
        }
        if (owner.principal() == null) {
            String operation = owner.operation() == null ? "" : owner.operation();
            keys.put(
                    "execute",
                    admin.executeKey(IdempotentCall.of(operation, checked).withScope(owner.scopeOrEmpty())));
        }
        if (owner.principal() == null && owner.scope() == null && owner.operation() == null) {
            keys.put("saved", admin.savedKey(checked));
        }
        List<FoundRecord> found = new ArrayList<>();
        List<Unreadable> unreadable = new ArrayList<>();
        CorruptRecordException corrupt = null;
        for (Map.Entry<String, StorageKey> use : keys.entrySet()) {
            try {
                admin.find(use.getValue()).ifPresent(record -> found.add(new FoundRecord(use.getKey(), record)));
            } catch (CorruptRecordException e) {
                corrupt = e;
                unreadable.add(new Unreadable(use.getKey(), use.getValue(), String.valueOf(e.getMessage())));
            }
        }
        if (found.isEmpty() && corrupt != null) {
            throw corrupt;
        }
        return new AllOfId(found, unreadable);
    }

    Optional<IdempotenceRecord> find(String key) {
        return admin.find(StorageKey.parse(key));
    }

    /** @param fence the fence of the record as a person saw it */
    Resolved resolve(String key, long fence, Resolution resolution) {
        IdempotenceRecord record = find(key).orElse(null);
        if (record == null) {
            return Resolved.NOT_FOUND;
        }
        return fence == record.fence() ? admin.resolve(record, resolution) : Resolved.CHANGED;
    }

    /**
     * A part of a list.
     *
     * @param next the key after which the next page begins; null if this is the last one
     */
    record ListedRecords(
            List<IdempotenceRecord> records, @Nullable String next) {}

    /**
     * Lists records in the order of their keys, each once. Every page walks over all records, and holds only those that it returns: a page is
     * right whatever was created or removed since the one before.
     */
    ListedRecords list(Predicate<IdempotenceRecord> wanted, @Nullable String after, int limit) {
        NavigableMap<String, IdempotenceRecord> smallest = new TreeMap<>();
        admin.list().forEach(record -> {
            String key = record.key().value();
            if ((after == null || key.compareTo(after) > 0) && wanted.test(record)) {
                smallest.put(key, record);
                if (smallest.size() > limit + 1) {
                    smallest.pollLastEntry();
                }
            }
        });
        boolean more = smallest.size() > limit;
        if (more) {
            smallest.pollLastEntry();
        }
        return new ListedRecords(List.copyOf(smallest.values()), more ? smallest.lastKey() : null);
    }

    /** The states of these names; without names, abandoned and unknown. */
    static Set<State> states(@Nullable Set<String> names) {
        Set<State> states = EnumSet.noneOf(State.class);
        for (String name : names == null ? Set.<String>of() : names) {
            states.addAll(State.named(name));
        }
        return states.isEmpty() ? EnumSet.of(State.ABANDONED, State.UNKNOWN) : states;
    }
}
