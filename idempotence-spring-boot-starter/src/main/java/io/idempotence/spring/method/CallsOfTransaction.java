package io.idempotence.spring.method;

import io.idempotence.server.IdempotentCall;
import io.idempotence.server.IdempotentExecution;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.transaction.UnexpectedRollbackException;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/** The calls of bean methods within one transaction of their caller. They are recorded when it has ended. */
final class CallsOfTransaction implements TransactionSynchronization, TransactionEffects.CommitWatcher {
    private final TransactionEffects effects;
    private final Map<IdempotentCall, Ran> calls = new HashMap<>();
    /** The number of each savepoint, in the order in which they were made. One that was made before the first call is not among them. */
    private final Map<Object, Integer> savepoints = new IdentityHashMap<>();

    /** Whether its commit was sent: a rollback that is reported then proves nothing. */
    private boolean commitSent;

    /**
     * A call that ran.
     *
     * @param savepoints how many savepoints had been made before it
     */
    private record Ran(
            IdempotentExecution execution,
            MethodOutcome outcome,
            boolean isEffect,
            int savepoints,
            CompletableFuture<Object> ended) {}

    private CallsOfTransaction(TransactionEffects effects) {
        this.effects = effects;
    }

    /**
     * The outcome of an equal call that waits for the end of a transaction of this thread; null if there is none. That transaction may be
     * committed already, or it may be a silent one around the innermost.
     */
    static @Nullable MethodOutcome earlier(IdempotentCall call, SilentTransactions silent) {
        Stream<TransactionSynchronization> innermost = TransactionSynchronizationManager.isSynchronizationActive()
                ? TransactionSynchronizationManager.getSynchronizations().stream()
                : Stream.empty();
        return TransactionEffects.of(CallsOfTransaction.class, Stream.concat(innermost, silent.synchronizations()))
                .map(calls -> calls.calls.get(call))
                .filter(Objects::nonNull)
                .findFirst()
                .map(Ran::outcome)
                .orElse(null);
    }

    /** The calls of the transaction of this thread. Registers them with the transaction if there were none. */
    static CallsOfTransaction begun(TransactionEffects effects, SilentTransactions silent) {
        SilentTransactions.Begun innermost = silent.current();
        List<TransactionSynchronization> registered = innermost != null
                ? innermost.synchronizations()
                : TransactionSynchronizationManager.getSynchronizations();
        CallsOfTransaction known = TransactionEffects.of(CallsOfTransaction.class, registered.stream())
                .findFirst()
                .orElse(null);
        if (known != null) {
            return known;
        }
        CallsOfTransaction first = new CallsOfTransaction(effects);
        if (innermost != null) {
            innermost.synchronizations().add(first);
        } else {
            TransactionSynchronizationManager.registerSynchronization(first);
        }
        return first;
    }

    @Override
    public void commitIsSent() {
        commitSent = true;
    }

    /** Returns a future of the outcome, as of {@link SurroundingTransaction#whenEnded}. */
    CompletionStage<Object> add(IdempotentCall call, IdempotentExecution execution, MethodOutcome outcome) {
        Ran ran = new Ran(execution, outcome, effects.countsCurrent(), savepoints.size(), new CompletableFuture<>());
        calls.put(call, ran);
        return ran.ended;
    }

    @Override
    public void savepoint(Object savepoint) {
        savepoints.put(savepoint, savepoints.size());
    }

    /** Calls behind the savepoint have no effect. They end now, so that they can run again in the same transaction. */
    @Override
    public void savepointRollback(Object savepoint) {
        int number = savepoints.getOrDefault(savepoint, -1);
        calls.values().removeIf(ran -> {
            boolean isBehind = ran.savepoints > number;
            if (isBehind) {
                effects.doNotMark(ran.execution);
                rolledBack(ran);
            }
            return isBehind;
        });
    }

    private static void rolledBack(Ran ran) {
        ran.ended.completeExceptionally(
                ran.outcome.thrown() != null
                        ? ran.outcome.thrown()
                        : new UnexpectedRollbackException("the transaction of the caller was rolled back"));
    }

    @Override
    public void afterCompletion(int status) {
        calls.values().forEach(ran -> {
            if (status == STATUS_ROLLED_BACK && !commitSent) {
                rolledBack(ran);
            } else {
                committed(ran, status == STATUS_COMMITTED);
            }
        });
    }

    /** A commit that may have failed is an effect as well. */
    private static void committed(Ran ran, boolean isCertain) {
        if (ran.isEffect) {
            ran.execution.tookEffect();
        }
        if (!isCertain) {
            ran.execution.markUnknown();
        }
        if (ran.outcome.thrown() != null) {
            ran.ended.completeExceptionally(ran.outcome.thrown());
        } else {
            ran.ended.complete(ran.outcome.returned());
        }
    }
}
