package io.idempotence.spring.method;

import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;
import org.springframework.core.Ordered;
import org.springframework.transaction.TransactionExecution;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * The transaction of a thread, if its manager calls synchronizations. After its commit, the transaction stays bound to the thread until all
 * synchronizations have run. What they execute then is not part of the transaction. But a method that they call may join it, and what that
 * method writes is committed with the connection, even if the method fails.
 */
final class SynchronizedTransaction implements TransactionSynchronization {
    /**
     * The transactions whose {@code afterCompletion} is running, the innermost first. Spring has no synchronizations at that time. If a
     * callback begins or joins a transaction, Spring also resets its state of the one that is completing.
     */
    private static final ThreadLocal<Deque<SynchronizedTransaction>> COMPLETING = new ThreadLocal<>();

    private final TransactionExecution transaction;
    private boolean isCommitted;

    private SynchronizedTransaction(TransactionExecution transaction) {
        this.transaction = transaction;
    }

    /** Watches the transaction of this thread, which has just begun. */
    static void begin(TransactionExecution transaction) {
        TransactionSynchronizationManager.registerSynchronization(new SynchronizedTransaction(transaction));
    }

    /** Forgets a transaction whose synchronizations have all run. */
    static void end(TransactionExecution transaction) {
        if (COMPLETING.get() != null) {
            completingWithout(transaction);
        }
    }

    /** Whether this thread is in such a transaction, and it is not committed yet. */
    static boolean isActive() {
        return TransactionSynchronizationManager.isActualTransactionActive()
                && TransactionSynchronizationManager.isSynchronizationActive()
                && TransactionSynchronizationManager.getSynchronizations().stream()
                        .noneMatch(each -> each instanceof SynchronizedTransaction ended && ended.isCommitted);
    }

    /** Whether this thread is in such a transaction that may write, and it is committed or, in {@code afterCompletion}, rolled back. */
    static boolean mayStillWrite() {
        if (TransactionSynchronizationManager.isSynchronizationActive()) {
            return TransactionSynchronizationManager.getSynchronizations().stream()
                    .anyMatch(each -> each instanceof SynchronizedTransaction ended
                            && ended.isCommitted
                            && !ended.transaction.isReadOnly());
        }
        SynchronizedTransaction innermost = completingWithout(null).peek();
        return innermost != null && !innermost.transaction.isReadOnly();
    }

    /** The completing transactions without {@code ended}. Also drops those whose end no listener was notified of. */
    private static Deque<SynchronizedTransaction> completingWithout(@Nullable TransactionExecution ended) {
        Deque<SynchronizedTransaction> completing = COMPLETING.get();
        if (completing == null) {
            return new ArrayDeque<>(1);
        }
        completing.removeIf(each -> each.transaction == ended || each.transaction.isCompleted());
        if (completing.isEmpty()) {
            COMPLETING.remove();
        }
        return completing;
    }

    /** The highest precedence, so that the other synchronizations run after this one. */
    @Override
    public int getOrder() {
        return Ordered.HIGHEST_PRECEDENCE;
    }

    @Override
    public void afterCommit() {
        isCommitted = true;
    }

    @Override
    public void afterCompletion(int status) {
        Deque<SynchronizedTransaction> completing = completingWithout(null);
        completing.push(this);
        COMPLETING.set(completing);
    }
}
