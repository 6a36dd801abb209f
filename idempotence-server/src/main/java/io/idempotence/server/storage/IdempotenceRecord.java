package io.idempotence.server.storage;

import java.time.Duration;

/**
 * A record as an operator sees it.
 *
 * @param key where it lives
 * @param state its state by the storage's clock
 * @param fence the number of claims so far
 * @param leaseLeft until the claim counts as abandoned; negative for how long it has been abandoned, or unknown; zero in other states
 * @param retentionLeft until the record is gone
 */
public record IdempotenceRecord(
        StorageKey key, RecordState state, long fence, Duration leaseLeft, Duration retentionLeft) {}
