package io.idempotence.spring.server;

import io.idempotence.server.servlet.IdempotenceFilterBuilder;

/**
 * A bean that changes the filter of the server half before it is built. It is called after the properties {@code idempotence.server.*}
 * were applied. Several are called in their order.
 */
@FunctionalInterface
public interface IdempotenceFilterCustomizer {
    /**
     * Changes the filter.
     *
     * @param filter the builder of the filter
     */
    void customize(IdempotenceFilterBuilder filter);
}
