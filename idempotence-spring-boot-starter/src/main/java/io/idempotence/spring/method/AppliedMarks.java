package io.idempotence.spring.method;

import io.idempotence.server.IdempotentExecution;
import io.idempotence.spring.server.IdempotenceServerProperties;
import org.jspecify.annotations.Nullable;
import org.springframework.transaction.TransactionExecution;

/** The marks of in-transaction mode, which are committed together with the business data. */
interface AppliedMarks {
    /** Whether the storage is in that mode. */
    boolean isOn();

    /** Fails the start if the properties ask for this mode and the storage cannot be marked. */
    void check(IdempotenceServerProperties properties);

    /**
     * Marks an execution in the transaction of this thread, unless an earlier mark was committed. Returns whether it did. Throws if the
     * transaction must roll back.
     *
     * @param transaction the transaction, or null if it is not known
     */
    boolean mark(IdempotentExecution execution, @Nullable TransactionExecution transaction);

    /** Notes that the transaction of the mark was committed. */
    void committed(IdempotentExecution execution);

    /** For other storages. */
    final class None implements AppliedMarks {
        @Override
        public boolean isOn() {
            return false;
        }

        @Override
        public void check(IdempotenceServerProperties properties) {}

        @Override
        public boolean mark(IdempotentExecution execution, @Nullable TransactionExecution transaction) {
            return false;
        }

        @Override
        public void committed(IdempotentExecution execution) {}
    }
}
