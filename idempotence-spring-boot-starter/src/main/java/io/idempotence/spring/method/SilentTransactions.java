package io.idempotence.spring.method;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.transaction.TransactionExecution;
import org.springframework.transaction.support.DefaultTransactionStatus;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * The transactions of threads whose managers call no synchronizations, as those of Kafka, JMS and RabbitMQ do. Only the managers' listeners
 * learn how they end. Thread-safe.
 */
final class SilentTransactions {
    private final ThreadLocal<Deque<Begun>> begun = ThreadLocal.withInitial(ArrayDeque::new);

    /** A transaction, with what waits for its end. Of each, only {@code afterCompletion} is called. */
    static final class Begun {
        private final TransactionExecution transaction;
        private final List<TransactionSynchronization> synchronizations = new ArrayList<>();

        private Begun(TransactionExecution transaction) {
            this.transaction = transaction;
        }

        TransactionExecution transaction() {
            return transaction;
        }

        List<TransactionSynchronization> synchronizations() {
            return synchronizations;
        }
    }

    static boolean isSilent(TransactionExecution transaction) {
        return transaction instanceof DefaultTransactionStatus status
                && status.isNewTransaction()
                && !status.isNewSynchronization();
    }

    void begin(TransactionExecution transaction) {
        if (isSilent(transaction)) {
            begun.get().push(new Begun(transaction));
        }
    }

    /**
     * The innermost transaction of this thread that may take effect, if it is a silent one; otherwise null. A read-only transaction does not
     * count, nor does a scope that only has synchronizations.
     */
    @Nullable
    Begun current() {
        boolean isWithinAnother =
                SynchronizedTransaction.isActive() && !TransactionSynchronizationManager.isCurrentTransactionReadOnly();
        return isWithinAnother ? null : begun.get().peek();
    }

    /** What waits for the end of any of the silent transactions of this thread. */
    Stream<TransactionSynchronization> synchronizations() {
        return begun.get().stream().flatMap(each -> each.synchronizations.stream());
    }

    /** @param status as of {@link TransactionSynchronization#afterCompletion} */
    void end(TransactionExecution transaction, int status) {
        Begun innermost = begun.get().peek();
        if (innermost == null || innermost.transaction != transaction) {
            return;
        }
        begun.get().pop();
        if (begun.get().isEmpty()) {
            begun.remove();
        }
        innermost.synchronizations.forEach(each -> each.afterCompletion(status));
    }
}
