package io.idempotence.spring.method;

import org.springframework.core.Ordered;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * The transaction of a thread, if its manager calls synchronizations. After its commit it stays bound to the thread until all of them have
 * run. What they execute then is not part of it. Yet a method that they call may join it, and what that writes is committed with the
 * connection, even if the method fails.
 */
final class SynchronizedTransaction implements TransactionSynchronization {
    private boolean isCommitted;

    private SynchronizedTransaction() {}

    /** Watches the transaction of this thread, which has just begun. */
    static void begin() {
        TransactionSynchronizationManager.registerSynchronization(new SynchronizedTransaction());
    }

    /** Whether this thread is in such a transaction, and it is not committed yet. */
    static boolean isActive() {
        return TransactionSynchronizationManager.isActualTransactionActive()
                && TransactionSynchronizationManager.isSynchronizationActive()
                && !isCommitted();
    }

    /** Whether this thread is in such a transaction, and it is committed or, in {@code afterCompletion}, perhaps rolled back. */
    static boolean hasEnded() {
        return TransactionSynchronizationManager.isSynchronizationActive()
                ? isCommitted()
                : TransactionSynchronizationManager.isActualTransactionActive();
    }

    private static boolean isCommitted() {
        return TransactionSynchronizationManager.getSynchronizations().stream()
                .anyMatch(each -> each instanceof SynchronizedTransaction ended && ended.isCommitted);
    }

    /** First of all, so that the others run after it. */
    @Override
    public int getOrder() {
        return Ordered.HIGHEST_PRECEDENCE;
    }

    @Override
    public void afterCommit() {
        isCommitted = true;
    }
}
