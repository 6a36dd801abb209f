package io.idempotence.spring.method;

import io.idempotence.internal.Causes;
import io.idempotence.server.IdempotentExecution;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.core.Ordered;
import org.springframework.dao.ConcurrencyFailureException;
import org.springframework.dao.DataIntegrityViolationException;
import org.springframework.transaction.HeuristicCompletionException;
import org.springframework.transaction.TransactionExecution;
import org.springframework.transaction.TransactionExecutionListener;
import org.springframework.transaction.support.DefaultTransactionStatus;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * The commits of a thread's transactions, as effects of the thread's executions. The IDs of these are then never released. Read-only
 * transactions and savepoints are no effects. Thread-safe.
 */
final class TransactionEffects {
    private final AppliedMarks marks;
    private final UnattributedCommits unattributed;
    private final Supplier<Boolean> declaresEffects;
    /** The transactions whose commit was sent to the database, and whose outcome is not known yet. */
    private final Set<TransactionExecution> committing =
            Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));

    private final SilentTransactions silent = new SilentTransactions();

    TransactionEffects(AppliedMarks marks, UnattributedCommits unattributed, Supplier<Boolean> declaresEffects) {
        this.marks = marks;
        this.unattributed = unattributed;
        this.declaresEffects = declaresEffects;
    }

    SilentTransactions silent() {
        return silent;
    }

    private static boolean counts(TransactionExecution transaction) {
        return !transaction.isReadOnly() && !transaction.isNested();
    }

    /** Whether a commit of the transaction of this thread counts as an effect. */
    boolean countsCurrent() {
        SilentTransactions.Begun innermost = silent.current();
        boolean counts = innermost != null
                ? counts(innermost.transaction())
                : !TransactionSynchronizationManager.isCurrentTransactionReadOnly();
        return declaresEffects.get() && counts;
    }

    /**
     * If this thread's transaction has already ended, counts what the innermost execution of this thread is about to run as an effect. No
     * listener reports a method that joins such a transaction, and nothing rolls it back.
     */
    void countIfEnded() {
        if (SynchronizedTransaction.mayStillWrite() && declaresEffects.get()) {
            IdempotentExecution.current().stream().findFirst().ifPresent(IdempotentExecution::tookEffect);
        }
    }

    /**
     * Whether a rollback of this thread's transaction takes nothing back: it is one of Spring Batch's {@code ResourcelessTransactionManager},
     * and nothing else takes part, such as a producer of Kafka or a connection.
     */
    boolean takesNothingBack() {
        Set<Object> taking = TransactionSynchronizationManager.getResourceMap().keySet();
        return !marks.isOn()
                && silent.current() == null
                && !taking.isEmpty()
                && taking.stream().allMatch(TransactionEffects::isOfBatch);
    }

    private static boolean isOfBatch(Object manager) {
        String type = manager.getClass().getName();
        return type.startsWith("org.springframework.batch.") && type.endsWith(".ResourcelessTransactionManager");
    }

    private static boolean isInExecution() {
        return !IdempotentExecution.current().isEmpty();
    }

    /** Marks an execution that ran within the transaction of this thread, when that is about to be committed, or now if it already is. */
    void markAtCommit(IdempotentExecution execution) {
        SilentTransactions.Begun innermost = silent.current();
        if (marks.isOn() && innermost != null) {
            marks.mark(execution, innermost.transaction(), marks.connection());
        } else if (marks.isOn()) {
            markings()
                    .findFirst()
                    .orElseGet(() -> register(new Marking(null, null)))
                    .add(execution);
        }
    }

    /** Does not mark an execution that is to be marked at the commit: its effects were taken back. */
    void doNotMark(IdempotentExecution execution) {
        if (silent.current() == null) {
            markings().forEach(marking -> marking.executions.remove(execution));
        }
    }

    private static Stream<Marking> markings() {
        return registered(Marking.class);
    }

    private static <T> Stream<T> registered(Class<T> type) {
        return of(type, TransactionSynchronizationManager.getSynchronizations().stream());
    }

    static <T> Stream<T> of(Class<T> type, Stream<TransactionSynchronization> synchronizations) {
        return synchronizations.filter(type::isInstance).map(type::cast);
    }

    /**
     * A synchronization that waits for the end of a transaction and must know that its commit was sent: if that commit fails, its effect is
     * unknown.
     */
    interface CommitWatcher {
        void commitIsSent();
    }

    private static void commitIsSent() {
        if (TransactionSynchronizationManager.isSynchronizationActive()) {
            registered(CommitWatcher.class).forEach(CommitWatcher::commitIsSent);
        }
    }

    private static Marking register(Marking marking) {
        TransactionSynchronizationManager.registerSynchronization(marking);
        return marking;
    }

    /** Returns whether a commit of the transaction was sent, may have succeeded, and counts as an effect. */
    private boolean ended(TransactionExecution transaction, boolean mayBeCommitted) {
        boolean mayHaveTakenEffect = committing.remove(transaction) && mayBeCommitted;
        if (mayHaveTakenEffect) {
            IdempotentExecution.current().forEach(IdempotentExecution::tookEffect);
        }
        unattributed.end(transaction, mayHaveTakenEffect);
        return mayHaveTakenEffect;
    }

    /** Whether a database reports that it rolled the transaction back. After any other failure of a commit, nobody knows. */
    private static boolean isRolledBack(Throwable failure) {
        for (Throwable cause : Causes.of(failure).toList()) {
            if (cause instanceof HeuristicCompletionException) {
                // Its cause may be that of one database of several.
                return false;
            }
            if (cause instanceof DataIntegrityViolationException || cause instanceof ConcurrencyFailureException) {
                return true;
            }
            if (cause instanceof SQLException sql && sql.getSQLState() != null) {
                String state = sql.getSQLState();
                // Constraint violated; transaction rolled back, but not 40003: statement completion unknown.
                return state.startsWith("23") || (state.startsWith("40") && !state.equals("40003"));
            }
        }
        return false;
    }

    /**
     * Whether a rollback that the manager reports really rolled the transaction back. Other managers also report a rollback that did
     * nothing, after a commit whose reply was lost.
     */
    private static boolean isOfJta(TransactionExecution transaction) {
        return transaction instanceof DefaultTransactionStatus status
                && status.hasTransaction()
                && status.getTransaction().getClass().getName().startsWith("org.springframework.transaction.jta.");
    }

    /** The listener for a transaction manager. It is not a bean, because Spring Boot would add it to some managers, too. */
    final class Listener implements TransactionExecutionListener {
        @Override
        public void afterBegin(TransactionExecution transaction, @Nullable Throwable failure) {
            if (failure != null) {
                return;
            }
            silent.begin(transaction);
            if (TransactionSynchronizationManager.isSynchronizationActive()) {
                if (!transaction.isNested() && !SilentTransactions.isSilent(transaction)) {
                    SynchronizedTransaction.begin(transaction);
                }
                if (marks.isOn() && counts(transaction)) {
                    register(new Marking(transaction, marks.connection()));
                }
            }
        }

        @Override
        public void beforeCommit(TransactionExecution transaction) {
            // A transaction that is marked for rollback is not committed, even if a commit is requested.
            boolean isEffect = counts(transaction) && !transaction.isRollbackOnly();
            if (isEffect && marks.isOn()) {
                mark(transaction);
            }
            if (isEffect && declaresEffects.get()) {
                committing.add(transaction);
                if (!isInExecution()) {
                    unattributed.begin(transaction);
                }
                if (!SilentTransactions.isSilent(transaction) && !isOfJta(transaction)) {
                    commitIsSent();
                }
            }
        }

        private void mark(TransactionExecution transaction) {
            if (SilentTransactions.isSilent(transaction)) {
                IdempotentExecution.current()
                        .forEach(execution -> marks.mark(execution, transaction, marks.connection()));
            } else if (TransactionSynchronizationManager.isSynchronizationActive()) {
                markings().filter(marking -> marking.transaction == transaction).forEach(Marking::beforeCommitItself);
            }
        }

        @Override
        public void afterCommit(TransactionExecution transaction, @Nullable Throwable failure) {
            SynchronizedTransaction.end(transaction);
            boolean mayBeCommitted = failure == null || !isRolledBack(failure);
            ended(transaction, mayBeCommitted);
            if (failure == null && SilentTransactions.isSilent(transaction)) {
                IdempotentExecution.current().forEach(marks::committed);
            }
            silent.end(
                    transaction,
                    failure == null
                            ? TransactionSynchronization.STATUS_COMMITTED
                            : mayBeCommitted
                                    ? TransactionSynchronization.STATUS_UNKNOWN
                                    : TransactionSynchronization.STATUS_ROLLED_BACK);
        }

        /**
         * Also called after a commit that failed, with a failure unless the rollback succeeded. Such a rollback shows nothing: the commit's
         * reply may be lost, and then there is nothing to roll back.
         */
        @Override
        public void afterRollback(TransactionExecution transaction, @Nullable Throwable failure) {
            SynchronizedTransaction.end(transaction);
            boolean isRolledBack = failure == null ? isOfJta(transaction) : isRolledBack(failure);
            silent.end(
                    transaction,
                    ended(transaction, !isRolledBack)
                            ? TransactionSynchronization.STATUS_UNKNOWN
                            : TransactionSynchronization.STATUS_ROLLED_BACK);
        }
    }

    /** Marks the executions of one transaction. */
    private final class Marking implements TransactionSynchronization {
        private final @Nullable TransactionExecution transaction;
        private final @Nullable Object around;
        private final List<IdempotentExecution> executions = new ArrayList<>();
        private final List<IdempotentExecution> marked = new ArrayList<>();
        private boolean isCommitting;

        /**
         * @param transaction null if its manager has no listeners
         * @param around the connection that the thread had when the transaction had begun
         */
        Marking(@Nullable TransactionExecution transaction, @Nullable Object around) {
            this.transaction = transaction;
            this.around = around;
        }

        /** An execution may run when others are marked already, in another callback before the commit. */
        void add(IdempotentExecution execution) {
            if (isCommitting) {
                mark(execution);
            } else {
                executions.add(execution);
            }
        }

        private void mark(IdempotentExecution execution) {
            if (marks.mark(execution, transaction, around)) {
                marked.add(execution);
            }
        }

        @Override
        public void beforeCommit(boolean readOnly) {
            if (!readOnly) {
                TransactionSynchronizationManager.registerSynchronization(new EndOfMarking());
                if (!marks.mayWaitFor(transaction)) {
                    markAll();
                }
            }
        }

        /**
         * Called after all callbacks before the commit. One of them may commit a transaction of its own for the same execution, which would
         * wait for this mark.
         */
        void beforeCommitItself() {
            if (marks.mayWaitFor(transaction)) {
                markAll();
            }
        }

        private void markAll() {
            isCommitting = true;
            executions.addAll(IdempotentExecution.current());
            executions.forEach(this::mark);
        }

        @Override
        public void afterCompletion(int status) {
            if (status == STATUS_COMMITTED) {
                marked.forEach(marks::committed);
            }
        }

        /** Ends the marking after the commit, before other callbacks run: what they execute is not part of the transaction. */
        private final class EndOfMarking implements TransactionSynchronization {
            @Override
            public int getOrder() {
                return Ordered.HIGHEST_PRECEDENCE;
            }

            @Override
            public void afterCommit() {
                isCommitting = false;
                marked.forEach(marks::committed);
            }
        }
    }
}
