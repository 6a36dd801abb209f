package io.idempotence.spring.server;

import io.idempotence.server.storage.IdempotenceStorage;

/**
 * The storage in use.
 *
 * @param storage the storage
 * @param kind one word, for health
 * @param reason which and why, for the log
 */
record ChosenStorage(IdempotenceStorage storage, String kind, String reason) {}
