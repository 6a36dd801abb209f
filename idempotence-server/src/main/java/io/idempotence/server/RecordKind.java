package io.idempotence.server;

import io.idempotence.server.storage.StorageKey;

/**
 * The use of an ID that a record is of. A handler may well use the ID of its request with {@code execute} or {@code saveIfAbsent}: their
 * records must not meet the request's own.
 */
enum RecordKind {
    REQUEST(""),
    EXECUTE("execute"),
    SAVE("saveIfAbsent");

    private final String prefix;

    RecordKind(String prefix) {
        this.prefix = prefix;
    }

    /** Where the record of a call is. */
    StorageKey key(String namespace, IdempotentCall call) {
        String operation = call.operation().isEmpty() ? prefix : prefix + ":" + call.operation();
        return StorageKey.of(namespace, call.scope(), operation, call.id());
    }
}
