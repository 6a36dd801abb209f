package io.idempotence.server;

import io.idempotence.server.storage.IdempotenceStorage;

/**
 * What the executions of one {@link Idempotence} share.
 *
 * @param writes what the storage could not take when it was due
 * @param errorPages answers that an error page may still change; apart, because a write may wait for a storage that is down
 */
record Engine(
        IdempotenceStorage storage,
        Events events,
        Background writes,
        Background errorPages,
        Leases leases,
        Waiters waiters) {}
