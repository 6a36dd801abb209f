package io.idempotence.spring.method;

import io.idempotence.server.IdempotentCall;
import io.idempotence.server.IdempotentExecution;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.support.AopUtils;
import org.springframework.util.ClassUtils;

/** The interceptor that runs a bean method once for each ID. Thread-safe. */
@SuppressWarnings("NullAway") // a result that is null is stored as such
final class IdempotentInterceptor implements IdempotentAdvice {
    private final BeanOperations operations;
    private final OperationSources sources;
    private final SurroundingTransaction transactions;
    private final UnattributedCommits commits;

    IdempotentInterceptor(
            BeanOperations operations,
            OperationSources sources,
            SurroundingTransaction transactions,
            UnattributedCommits commits) {
        this.operations = operations;
        this.sources = sources;
        this.transactions = transactions;
        this.commits = commits;
    }

    @Override
    public @Nullable Object invoke(MethodInvocation invocation) throws Throwable {
        Object target = Objects.requireNonNull(invocation.getThis());
        if (IdempotentAdvice.isIn(target)) {
            // The application has a second creator of proxies, such as Shiro's. The inner proxy runs the method.
            return invocation.proceed();
        }
        Class<?> type = ClassUtils.getUserClass(target);
        BeanOperation operation =
                operations.operation(AopUtils.getMostSpecificMethod(invocation.getMethod(), type), type);
        IdempotentCall call =
                IdempotentCall.of(operation.name(), operation.id().evaluate(target, invocation.getArguments()));
        MethodResult result = operation.result();
        MethodOutcome earlier = transactions.earlier(call);
        if (earlier != null) {
            return result.isFuture() ? copy(earlier) : result.fromStored(earlier.get());
        }
        if (result.isFuture()) {
            return transactions.isActive()
                    ? futureInTransaction(operation, call, invocation)
                    : future(operation, call, invocation);
        }
        Object stored = transactions.isActive()
                ? inTransaction(operation, call, invocation)
                : sources.idempotence()
                        .execute(
                                call,
                                operation.policy(),
                                operation.maxWait(),
                                result.codec(),
                                execution -> result.toStored(proceed(invocation)));
        return result.fromStored(stored);
    }

    private CompletableFuture<Object> future(
            BeanOperation operation, IdempotentCall call, MethodInvocation invocation) {
        MethodResult result = operation.result();
        return sources.idempotence()
                .executeAsync(
                        call,
                        operation.policy(),
                        operation.maxWait(),
                        result.codec(),
                        execution -> watched(invocation).thenApply(result::toStored))
                .thenApply(result::fromStored);
    }

    /**
     * A future of a call within a transaction of its caller is recorded when that transaction and the future have ended. The caller gets
     * a future that ends with the method, because it may wait for it before it commits.
     */
    private CompletionStage<Object> futureInTransaction(
            BeanOperation operation, IdempotentCall call, MethodInvocation invocation) throws Throwable {
        MethodResult result = operation.result();
        MethodOutcome[] ran = new MethodOutcome[1];
        CompletableFuture<Object> recorded = sources.idempotence()
                .executeAsync(call, operation.policy(), operation.maxWait(), result.codec(), execution -> {
                    MethodOutcome outcome = started(invocation);
                    ran[0] = transactions.marked(execution, outcome);
                    CompletionStage<Object> ended = transactions.whenEnded(call, execution, ran[0]);
                    return ran[0].returned() instanceof CompletionStage<?> work
                            ? ended.thenCombine(work, (committed, returned) -> result.toStored(returned))
                            : ended;
                });
        return ran[0] == null ? recorded.thenApply(result::fromStored) : copy(ran[0]);
    }

    /** A copy of the method's future for a caller, who may cancel it without ending what is recorded. */
    @SuppressWarnings("unchecked")
    private static CompletionStage<Object> copy(MethodOutcome outcome) throws Throwable {
        return ((CompletionStage<Object>) Objects.requireNonNull(outcome.get())).thenApply(returned -> returned);
    }

    private MethodOutcome started(MethodInvocation invocation) {
        try {
            return new MethodOutcome(watched(invocation), null);
        } catch (Throwable e) {
            return new MethodOutcome(null, e);
        }
    }

    /** A commit on a thread without an execution counts as an effect of the executions in which the method was called. */
    private CompletionStage<Object> watched(MethodInvocation invocation) throws Exception {
        List<IdempotentExecution> executions = IdempotentExecution.current();
        long before = commits.ended();
        return stage(invocation).whenComplete((returned, thrown) -> {
            if (commits.anySince(before)) {
                executions.forEach(IdempotentExecution::tookEffect);
            }
        });
    }

    @SuppressWarnings("unchecked")
    private CompletionStage<Object> stage(MethodInvocation invocation) throws Exception {
        return (CompletionStage<Object>)
                Objects.requireNonNull(proceed(invocation), "the method returned null instead of a future");
    }

    /** A call within a transaction of its caller is recorded when that transaction has ended, because the caller may roll it back. */
    private @Nullable Object inTransaction(BeanOperation operation, IdempotentCall call, MethodInvocation invocation)
            throws Throwable {
        MethodOutcome[] ran = new MethodOutcome[1];
        CompletableFuture<Object> recorded = sources.idempotence()
                .executeAsync(
                        call,
                        operation.policy(),
                        operation.maxWait(),
                        operation.result().codec(),
                        execution -> {
                            ran[0] = transactions.marked(execution, outcome(operation, invocation));
                            return transactions.whenEnded(call, execution, ran[0]);
                        });
        if (ran[0] != null) {
            return ran[0].get();
        }
        try {
            return recorded.join();
        } catch (CompletionException e) {
            throw e.getCause() == null ? e : e.getCause();
        }
    }

    private MethodOutcome outcome(BeanOperation operation, MethodInvocation invocation) {
        try {
            return new MethodOutcome(operation.result().toStored(proceed(invocation)), null);
        } catch (Throwable e) {
            return new MethodOutcome(null, e);
        }
    }

    private @Nullable Object proceed(MethodInvocation invocation) throws Exception {
        transactions.beforeRun();
        try {
            return invocation.proceed();
        } catch (Exception | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException(
                    "a bean method threw a " + e.getClass().getName(), e);
        }
    }
}
