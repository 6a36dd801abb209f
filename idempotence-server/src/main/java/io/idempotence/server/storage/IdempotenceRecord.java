package io.idempotence.server.storage;

import java.time.Duration;

/**
 * A record as an operator sees it.
 *
 * @param key the key of the record
 * @param state its state by the storage's clock
 * @param fence the number of claims so far
 * @param leaseLeft the time until the claim counts as abandoned; if the record is abandoned or unknown, minus the time since; zero in other
 *     states
 * @param retentionLeft the time until the record is gone
 */
public record IdempotenceRecord(
        StorageKey key, RecordState state, long fence, Duration leaseLeft, Duration retentionLeft) {}
