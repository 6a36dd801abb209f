package io.idempotence.spring.method;

import java.util.List;

/** The operations of the application with {@code @Idempotent}. A bean, complete when the application has started. Thread-safe. */
public interface IdempotentOperations {
    /**
     * Lists the operations.
     *
     * @return sorted by handler
     */
    List<IdempotentOperation> all();
}
