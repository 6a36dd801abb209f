package io.idempotence.spring.actuate;

import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import io.idempotence.spring.method.IdempotentOperation;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.Access;
import org.springframework.boot.actuate.endpoint.InvalidEndpointRequestException;
import org.springframework.boot.actuate.endpoint.annotation.DeleteOperation;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.boot.actuate.endpoint.annotation.Selector;
import org.springframework.boot.actuate.endpoint.annotation.WriteOperation;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.ResponseStatus;

/**
 * The Actuator endpoint {@code idempotence}: the operator's tool over HTTP and JMX. No operation runs the application's code. Resolving and
 * deleting need {@code management.endpoint.idempotence.access=unrestricted}.
 *
 * <p>An optional parameter has two annotations, because Boot 3 looks for the one and Boot 4 for the other.
 */
@Endpoint(id = "idempotence", defaultAccess = Access.READ_ONLY)
final class IdempotenceEndpoint {
    private static final int DEFAULT_LIMIT = 100;
    private static final int MAX_LIMIT = 1000;

    private final Supplier<IdempotenceAdmin> admin;
    private final Supplier<List<IdempotentOperation>> operations;

    /** @param admin opens the storage when it is called first */
    IdempotenceEndpoint(Supplier<IdempotenceAdmin> admin, Supplier<List<IdempotentOperation>> operations) {
        this.admin = admin;
        this.operations = operations;
    }

    private RecordsView records() {
        return new RecordsView(admin.get());
    }

    /**
     * Finds the records of an ID, or lists records by state.
     *
     * @param id the ID to find; the other parameters but {@code principal}, {@code scope} and {@code operation} are for lists
     * @param principal whose request it was
     * @param scope whose request or execution it was, if the application sets scopes of its own
     * @param operation the operation of an execution
     * @param state the states to list, or {@code all}; abandoned and unknown ones by default
     * @param olderThan for how long listed records have been abandoned or unknown at least
     * @param limit the size of a page, 1 to 1000; 100 by default
     * @param after {@code next} of the page before
     */
    @ReadOperation
    Map<String, Object> records(
            @org.springframework.lang.Nullable @Nullable String id,
            @org.springframework.lang.Nullable @Nullable String principal,
            @org.springframework.lang.Nullable @Nullable String scope,
            @org.springframework.lang.Nullable @Nullable String operation,
            @org.springframework.lang.Nullable @Nullable Set<String> state,
            @org.springframework.lang.Nullable @Nullable Duration olderThan,
            @org.springframework.lang.Nullable @Nullable Integer limit,
            @org.springframework.lang.Nullable @Nullable String after) {
        return respond(() -> {
            if (id != null) {
                return found(id, new RecordsView.IdOwner(principal, scope, operation));
            }
            if (principal != null || scope != null || operation != null) {
                throw new IllegalArgumentException(
                        "principal, scope and operation select the record of an ID: add id, or leave them out");
            }
            return listed(RecordsView.states(state), olderThan, limit == null ? DEFAULT_LIMIT : limit, after);
        });
    }

    private Map<String, Object> found(String id, RecordsView.IdOwner owner) {
        RecordsView.AllOfId all = records().find(id, owner);
        List<Map<String, Object>> rows = all.records().stream()
                .map(found -> {
                    Map<String, Object> row = new LinkedHashMap<>();
                    row.put("kind", found.kind());
                    row.putAll(found.record().fields());
                    return row;
                })
                .toList();
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("records", rows);
        if (!all.unreadable().isEmpty()) {
            result.put(
                    "unreadable",
                    all.unreadable().stream()
                            .map(one ->
                                    Map.of("kind", one.kind(), "key", one.key().value(), "message", one.why()))
                            .toList());
        }
        return result;
    }

    private Map<String, Object> listed(
            Set<State> states, @Nullable Duration olderThan, int limit, @Nullable String after) {
        if (limit < 1 || limit > MAX_LIMIT) {
            throw new IllegalArgumentException("limit must be 1 to " + MAX_LIMIT + ", got " + limit);
        }
        if (olderThan != null && !states.stream().allMatch(State::isUncertain)) {
            throw new IllegalArgumentException(
                    "olderThan is for abandoned and unknown records only; the age of other records is not stored");
        }
        RecordsView.ListedRecords page = records()
                .list(
                        record -> states.contains(record.state())
                                && (olderThan == null || record.uncertainFor().compareTo(olderThan) >= 0),
                        after,
                        limit);
        Map<String, Object> result = new LinkedHashMap<>();
        result.put(
                "records",
                page.records().stream().map(IdempotenceRecord::fields).toList());
        if (page.next() != null) {
            result.put("next", page.next());
        }
        return result;
    }

    /**
     * Shows one record, the counts, or the protected operations.
     *
     * @param what the key of a record, {@code stats}, or {@code operations}
     * @return null if there is no such record
     */
    @ReadOperation
    @Nullable
    Map<String, Object> show(@Selector String what) {
        Map<String, Object> shown = respond(() -> switch (what) {
            case "stats" -> stats();
            case "operations" -> Map.of("operations", operations.get());
            default -> records().find(what).map(IdempotenceRecord::fields).orElse(Map.of());
        });
        return shown.isEmpty() ? null : shown;
    }

    private Map<String, Object> stats() {
        IdempotenceAdmin.Stats stats = admin.get().stats(record -> {});
        Map<String, Object> counts = new LinkedHashMap<>();
        stats.counts().forEach((state, count) -> counts.put(state.label(), count));
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("records", counts);
        stats.oldestUncertain().ifPresent(record -> result.put("oldestUncertain", record.fields()));
        return result;
    }

    /**
     * Resolves an abandoned or unknown record, after a person has checked the business data.
     *
     * @param key the record's key
     * @param as {@code applied} or {@code not-applied}
     * @param fence the fence of the record as the person saw it, required. With another one, nothing is done
     * @param retention how long the ID is remembered from now on at least; as the policy says by default
     */
    @WriteOperation
    Map<String, Object> resolve(
            @Selector String key,
            String as,
            @org.springframework.lang.Nullable @Nullable Long fence,
            @org.springframework.lang.Nullable @Nullable Duration retention) {
        return respond(() -> {
            Resolution resolution = switch (as) {
                case "applied" -> Resolution.APPLIED;
                case "not-applied" -> Resolution.NOT_APPLIED;
                default -> throw new IllegalArgumentException("as takes applied or not-applied");
            };
            if (fence == null) {
                // Another execution may have taken over since, and nobody has looked at its outcome.
                return Map.of("resolved", false, "message", "fence is missing; give that of the record as you saw it");
            }
            IdempotenceAdmin view =
                    retention == null ? admin.get() : admin.get().withRetention(retention);
            IdempotenceAdmin.Resolved resolved = new RecordsView(view).resolve(key, fence, resolution);
            Map<String, Object> result = new LinkedHashMap<>();
            result.put("resolved", resolved.isDone());
            result.put("as", as);
            result.put("message", resolved.message(resolution));
            records().find(key).ifPresent(now -> result.put("record", now.fields()));
            return result;
        });
    }

    /**
     * Forgets a record: the next attempt runs as if it were the first. Nothing is done if the record changes meanwhile.
     *
     * @param key the record's key
     * @param force deletes it even if its operation is done, runs, or may have taken effect: it may then run twice. Only a released record
     *     does not need it
     * @param fence the fence of the record as the person saw it, required with {@code force} if the record can be read. With another one,
     *     nothing is done
     */
    @DeleteOperation
    Map<String, Object> delete(
            @Selector String key,
            @org.springframework.lang.Nullable @Nullable Boolean force,
            @org.springframework.lang.Nullable @Nullable Long fence) {
        return respond(() -> {
            boolean forced = Boolean.TRUE.equals(force);
            StorageKey parsed = StorageKey.parse(key);
            Optional<IdempotenceRecord> seen;
            try {
                seen = admin.get().find(parsed);
            } catch (CorruptRecordException e) {
                return forced
                        ? admin.get().deleteUnreadable(parsed).fields()
                        : refused(
                                e.getMessage()
                                        + "; a newer version may have written it after its operation was done. Check the business data",
                                "add force=true");
            }
            if (seen.isEmpty()) {
                return Map.of("deleted", false, "message", "no such record");
            }
            String danger = danger(seen.get().state());
            if (danger != null && (!forced || fence == null)) {
                return refused(danger, "add force=true, and fence= with the fence of the record as you saw it");
            }
            boolean changed = fence != null && fence != seen.get().fence();
            IdempotenceAdmin.Deleted deleted = changed
                    ? new IdempotenceAdmin.Deleted(false, seen)
                    : admin.get().delete(seen.get());
            return deleted.fields();
        });
    }

    private static Map<String, Object> refused(String danger, String fix) {
        return Map.of("deleted", false, "message", "not deleted: " + danger + "; to delete it anyway, " + fix);
    }

    /** What may happen after a deletion, if that is bad. */
    private static @Nullable String danger(State state) {
        return switch (state) {
            case RELEASED -> null;
            case IN_PROGRESS ->
                "it is a saved ID, or its operation still runs and the next attempt would run it at the same time";
            case COMPLETED -> "its operation is done, and the next attempt would run it again";
            case ABANDONED, UNKNOWN -> "its outcome is unknown. Check the business data, and resolve it";
        };
    }

    /** Bad input is a 400, and a storage that does not respond a 503. A damaged record is described. */
    private static Map<String, Object> respond(Supplier<Map<String, Object>> work) {
        try {
            return work.get();
        } catch (IllegalArgumentException e) {
            throw new InvalidEndpointRequestException(e.getMessage(), e.getMessage());
        } catch (CorruptRecordException e) {
            return Map.of(
                    "state",
                    "unreadable",
                    "message",
                    e.getMessage()
                            + "; its ID is refused until the record is repaired, deleted, or its retention is over");
        } catch (StorageUnavailableException e) {
            throw new StorageDownException(e);
        }
    }

    @ResponseStatus(value = HttpStatus.SERVICE_UNAVAILABLE, reason = "The idempotence storage is unavailable.")
    private static final class StorageDownException extends RuntimeException {
        private static final long serialVersionUID = 1L;

        StorageDownException(StorageUnavailableException cause) {
            super("the idempotence storage is unavailable; nothing is known about the record", cause);
        }
    }
}
