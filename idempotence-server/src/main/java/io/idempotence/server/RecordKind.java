package io.idempotence.server;

import io.idempotence.server.storage.StorageKey;

/**
 * The use of an ID that a record belongs to. A handler may use the ID of its request with {@code execute} or {@code saveIfAbsent}, so each
 * use has its own records.
 */
enum RecordKind {
    REQUEST(""),
    EXECUTE("execute"),
    SAVE("saveIfAbsent");

    private final String prefix;

    RecordKind(String prefix) {
        this.prefix = prefix;
    }

    /** The key of a call's record. */
    StorageKey key(String namespace, IdempotentCall call) {
        String operation = call.operation().isEmpty() ? prefix : prefix + ":" + call.operation();
        return StorageKey.of(namespace, call.scope(), operation, call.id());
    }
}
