package io.idempotence.spring.method;

import io.idempotence.server.IdempotentCall;
import io.idempotence.server.IdempotentExecution;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;
import org.springframework.transaction.UnexpectedRollbackException;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/** The transaction in which a bean method is called, if there is one. */
interface SurroundingTransaction {
    /** The outcome of a method: what it returned or threw. */
    record MethodOutcome(
            @Nullable Object returned, @Nullable Throwable thrown) {
        @Nullable
        Object get() throws Throwable {
            if (thrown != null) {
                throw thrown;
            }
            return returned;
        }
    }

    /** Whether this thread is in a transaction. */
    boolean isActive();

    /**
     * The outcome of an equal call that this transaction made earlier, or null. Its record waits for the end of the transaction, and so
     * would a duplicate, which is part of it.
     */
    @Nullable
    MethodOutcome earlier(IdempotentCall call);

    /**
     * Has an execution marked in the transaction. Returns its outcome, or a failure if it cannot be marked: the transaction must then roll
     * back.
     */
    MethodOutcome marked(IdempotentExecution execution, MethodOutcome outcome);

    /**
     * Returns a future of the outcome, which completes when the transaction has ended. A commit counts as an effect of the execution by the
     * same rules as one within it. After a rollback the outcome is a failure.
     */
    CompletionStage<Object> whenEnded(IdempotentCall call, IdempotentExecution execution, MethodOutcome outcome);

    /** For applications without transactions. */
    final class None implements SurroundingTransaction {
        @Override
        public boolean isActive() {
            return false;
        }

        @Override
        public @Nullable MethodOutcome earlier(IdempotentCall call) {
            throw noTransaction();
        }

        @Override
        public MethodOutcome marked(IdempotentExecution execution, MethodOutcome outcome) {
            throw noTransaction();
        }

        @Override
        public CompletionStage<Object> whenEnded(
                IdempotentCall call, IdempotentExecution execution, MethodOutcome outcome) {
            throw noTransaction();
        }

        private static IllegalStateException noTransaction() {
            return new IllegalStateException("there is no transaction");
        }
    }

    /** The transaction of Spring. */
    final class OfSpring implements SurroundingTransaction {
        private final TransactionEffects effects;

        OfSpring(TransactionEffects effects) {
            this.effects = effects;
        }

        @Override
        public boolean isActive() {
            return TransactionSynchronizationManager.isActualTransactionActive()
                    && TransactionSynchronizationManager.isSynchronizationActive();
        }

        @Override
        public MethodOutcome marked(IdempotentExecution execution, MethodOutcome outcome) {
            try {
                effects.markAtCommit(execution);
                return outcome;
            } catch (RuntimeException e) {
                if (outcome.thrown() != null) {
                    e.addSuppressed(outcome.thrown());
                }
                return new MethodOutcome(null, e);
            }
        }

        @Override
        public @Nullable MethodOutcome earlier(IdempotentCall call) {
            return TransactionSynchronizationManager.getSynchronizations().stream()
                    .filter(one -> one instanceof Recording recording && recording.call.equals(call))
                    .map(one -> ((Recording) one).outcome)
                    .findFirst()
                    .orElse(null);
        }

        @Override
        public CompletionStage<Object> whenEnded(
                IdempotentCall call, IdempotentExecution execution, MethodOutcome outcome) {
            Recording recording = new Recording(call, execution, outcome, effects.countsCurrent());
            TransactionSynchronizationManager.registerSynchronization(recording);
            return recording.ended;
        }

        /** Not a record, whose hash code would be that of the outcome. */
        private static final class Recording implements TransactionSynchronization {
            private final IdempotentCall call;
            private final IdempotentExecution execution;
            private final MethodOutcome outcome;
            private final boolean isEffect;
            private final CompletableFuture<Object> ended = new CompletableFuture<>();

            Recording(IdempotentCall call, IdempotentExecution execution, MethodOutcome outcome, boolean isEffect) {
                this.call = call;
                this.execution = execution;
                this.outcome = outcome;
                this.isEffect = isEffect;
            }

            @Override
            public void afterCompletion(int status) {
                if (status == STATUS_ROLLED_BACK) {
                    ended.completeExceptionally(
                            outcome.thrown() != null
                                    ? outcome.thrown()
                                    : new UnexpectedRollbackException("the transaction of the caller was rolled back"));
                    return;
                }
                // A commit that may have failed is an effect as well.
                if (isEffect) {
                    execution.tookEffect();
                }
                if (status != STATUS_COMMITTED) {
                    execution.markUnknown();
                }
                if (outcome.thrown() != null) {
                    ended.completeExceptionally(outcome.thrown());
                } else {
                    ended.complete(outcome.returned());
                }
            }
        }
    }
}
