package io.idempotence.spring.method;

import io.idempotence.server.IdempotentCall;
import io.idempotence.server.IdempotentExecution;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/** The transaction in which a bean method is called, if there is one. */
interface SurroundingTransaction {
    /** Whether this thread is in a transaction that is not committed yet. */
    boolean isActive();

    /**
     * The outcome of an equal call that waits for the end of a transaction of this thread, or null. A duplicate on this thread would wait
     * for it in vain. That transaction may be committed already.
     */
    @Nullable
    MethodOutcome earlier(IdempotentCall call);

    /** Called within an execution, before its method runs. A transaction that has ended already then counts as an effect of it. */
    void beforeRun();

    /**
     * Has an execution marked in the transaction. Returns its outcome, or a failure if it cannot be marked: the transaction must then roll
     * back.
     */
    MethodOutcome marked(IdempotentExecution execution, MethodOutcome outcome);

    /**
     * Returns a future of the outcome, which completes when the transaction has ended, or at once if a rollback would take nothing back. A
     * commit counts as an effect of the execution by the same rules as one within it. After a rollback, also to a savepoint before the
     * call, the outcome is a failure.
     */
    CompletionStage<Object> whenEnded(IdempotentCall call, IdempotentExecution execution, MethodOutcome outcome);

    /** For applications without transactions. */
    final class NoTransaction implements SurroundingTransaction {
        @Override
        public boolean isActive() {
            return false;
        }

        @Override
        public @Nullable MethodOutcome earlier(IdempotentCall call) {
            return null;
        }

        @Override
        public void beforeRun() {}

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
            return effects.silent().current() != null || SynchronizedTransaction.isActive();
        }

        @Override
        public void beforeRun() {
            effects.countIfEnded();
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
            return CallsOfTransaction.earlier(call, effects.silent());
        }

        @Override
        public CompletionStage<Object> whenEnded(
                IdempotentCall call, IdempotentExecution execution, MethodOutcome outcome) {
            if (effects.takesNothingBack()) {
                return outcome.thrown() != null
                        ? CompletableFuture.failedFuture(outcome.thrown())
                        : CompletableFuture.completedFuture(outcome.returned());
            }
            return CallsOfTransaction.begun(effects, effects.silent()).add(call, execution, outcome);
        }
    }
}
