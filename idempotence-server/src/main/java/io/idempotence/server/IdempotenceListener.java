package io.idempotence.server;

import io.idempotence.IdempotenceId;

/**
 * Is told what the server half does. Called on the thread that does it: must be fast, thread-safe, and not throw; what it throws is logged
 * and otherwise ignored.
 */
@FunctionalInterface
public interface IdempotenceListener {
    /**
     * Something happened.
     *
     * @param event what
     * @param id to which ID; do not use it as a metric's label
     */
    void onEvent(IdempotenceEvent event, IdempotenceId id);
}
