package io.idempotence.spring.method;

import io.idempotence.server.IdempotentExecution;
import io.idempotence.spring.server.IdempotenceServerProperties;
import org.jspecify.annotations.Nullable;
import org.springframework.transaction.TransactionExecution;

/** The marks of in-transaction mode, which are committed together with the business data. */
interface AppliedMarks {
    /** Whether a storage is in that mode. */
    boolean isOn();

    /**
     * Fails the start if several storages are in this mode, or if the properties ask for it and the storage cannot be marked.
     */
    void check(IdempotenceServerProperties properties);

    /** The connection of this thread to the database of the marks; null if none is bound. */
    @Nullable
    Object connection();

    /**
     * Marks an execution in the transaction of this thread, unless an earlier mark was committed. Returns whether it did. Throws if the
     * transaction must roll back.
     *
     * @param transaction the transaction, or null if it is not known
     * @param around the {@link #connection} when the transaction began
     */
    boolean mark(IdempotentExecution execution, @Nullable TransactionExecution transaction, @Nullable Object around);

    /** Whether a mark can still be set when all callbacks before the commit have ended: a transaction of JTA may have no connection then. */
    boolean mayWaitFor(@Nullable TransactionExecution transaction);

    /** Notes that the transaction of the mark was committed. */
    void committed(IdempotentExecution execution);

    /** For other storages. */
    final class NoMarks implements AppliedMarks {
        @Override
        public boolean isOn() {
            return false;
        }

        @Override
        public void check(IdempotenceServerProperties properties) {}

        @Override
        public @Nullable Object connection() {
            return null;
        }

        @Override
        public boolean mark(
                IdempotentExecution execution, @Nullable TransactionExecution transaction, @Nullable Object around) {
            return false;
        }

        @Override
        public boolean mayWaitFor(@Nullable TransactionExecution transaction) {
            return false;
        }

        @Override
        public void committed(IdempotentExecution execution) {}
    }
}
