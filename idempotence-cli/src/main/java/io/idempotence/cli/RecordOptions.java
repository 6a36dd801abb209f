package io.idempotence.cli;

import io.idempotence.IdempotenceId;
import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.IdempotentCall;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.StorageKey;
import java.util.EnumMap;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** The options that select a record: an ID and its use, or the key that a list showed. */
final class RecordOptions {
    @Parameters(
            arity = "0..1",
            paramLabel = "ID",
            description =
                    "The idempotence ID: as in the Idempotency-Key header, without its quotes, or as idempotenceId in the log.")
    private @Nullable String id;

    @Option(
            names = "--key",
            paramLabel = "<key>",
            description = "The record's key, as list shows it, instead of an ID.")
    private @Nullable String key;

    @Option(
            names = "--kind",
            paramLabel = "<kind>",
            description = "What the ID was used for: request (an HTTP request), execute or saved (saveIfAbsent)."
                    + " Default: request; find looks at all three.")
    private @Nullable IdUse kind;

    @Option(
            names = "--principal",
            paramLabel = "<name>",
            description = "The user whose request it was, if the service authenticates its callers.")
    private @Nullable String principal;

    @Option(
            names = "--scope",
            paramLabel = "<scope>",
            description = "The scope of the request, if the filter sets its own scopes, or of the execution.")
    private @Nullable String scope;

    @Option(
            names = "--operation",
            paramLabel = "<name>",
            description = "The operation of an execution, if it has one. Looks at executions only.")
    private @Nullable String operation;

    /** The use of an ID. Each use of the same ID has a record of its own. */
    enum IdUse {
        request,
        execute,
        saved
    }

    /** The namespace in {@code --key}, if that is given. */
    Optional<String> namespaceOfKey() {
        return Optional.ofNullable(key).map(StorageKey::parse).map(StorageKey::namespace);
    }

    /** Whether {@code --kind} is {@code saved}. */
    boolean isSaved() {
        return kind == IdUse.saved;
    }

    /** The key of the record to change. */
    StorageKey key(IdempotenceAdmin admin) {
        if (key != null) {
            return StorageKey.parse(key);
        }
        IdUse usual = operation == null ? IdUse.request : IdUse.execute;
        return keyOf(admin, kind == null ? usual : kind);
    }

    /** The keys under which the ID may have a record. Not for {@code --key}. */
    Map<IdUse, StorageKey> keys(IdempotenceAdmin admin) {
        Map<IdUse, StorageKey> keys = new EnumMap<>(IdUse.class);
        for (IdUse each : IdUse.values()) {
            if (kind == each || kind == null && fits(each)) {
                keys.put(each, keyOf(admin, each));
            }
        }
        return keys;
    }

    private boolean fits(IdUse any) {
        return switch (any) {
            case request -> operation == null;
            case execute -> principal == null;
            case saved -> principal == null && scope == null && operation == null;
        };
    }

    boolean isKey() {
        return key != null;
    }

    /** What to check if there is no such record. */
    String hint() {
        String gone = "it belongs to another namespace, its retention is over, or it was never used here";
        if (key != null) {
            return gone;
        }
        return principal == null && scope == null && operation == null
                ? gone
                        + "; requests of authenticated callers need --principal (or --scope), executions perhaps --operation"
                : gone + ", or it is another caller's or --operation's";
    }

    /** What to check if there is no such record to change, or which kind of record the ID has instead. */
    String hint(IdempotenceAdmin admin) {
        if (key != null || kind != null) {
            return hint();
        }
        for (Map.Entry<IdUse, StorageKey> other : keys(admin).entrySet()) {
            if (exists(admin, other.getValue())) {
                return "the ID has one of another kind; add --kind " + other.getKey();
            }
        }
        return hint();
    }

    private static boolean exists(IdempotenceAdmin admin, StorageKey record) {
        try {
            return admin.find(record).isPresent();
        } catch (CorruptRecordException e) {
            return true;
        }
    }

    void check() {
        if ((id == null) == (key == null)) {
            throw new IllegalArgumentException("name one record: an ID, or --key with a key that list shows");
        }
        if (key != null && (kind != null || principal != null || scope != null || operation != null)) {
            throw new IllegalArgumentException(
                    "--key already identifies the record: leave out --kind, --principal, --scope and --operation");
        }
        if (principal != null && scope != null) {
            throw new IllegalArgumentException(
                    "--principal NAME is short for --scope principal:NAME: give one of them");
        }
        if (kind != null && !fits(kind) || operation != null && principal != null) {
            throw new IllegalArgumentException("only requests have a --principal, only executions an --operation,"
                    + " and only these two a --scope");
        }
    }

    private StorageKey keyOf(IdempotenceAdmin admin, IdUse of) {
        IdempotenceId checked = new IdempotenceId(id == null ? "" : id);
        return switch (of) {
            case request ->
                admin.requestKey(checked, principal != null ? "principal:" + principal : scope != null ? scope : "");
            case execute ->
                admin.executeKey(IdempotentCall.of(operation == null ? "" : operation, checked)
                        .withScope(scope == null ? "" : scope));
            case saved -> admin.savedKey(checked);
        };
    }
}
