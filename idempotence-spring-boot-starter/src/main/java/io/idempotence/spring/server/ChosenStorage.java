package io.idempotence.spring.server;

import io.idempotence.server.storage.IdempotenceStorage;

/**
 * The storage in use.
 *
 * @param storage the storage
 * @param kind one word, for health
 * @param reason which and why, for the log
 */
record ChosenStorage(IdempotenceStorage storage, String kind, String reason) {
    /** Returns the same choice with the bean that a post-processor or a test made of the storage. */
    ChosenStorage as(IdempotenceStorage bean) {
        return new ChosenStorage(bean, kind, reason);
    }
}
