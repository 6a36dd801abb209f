package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.storage.CorruptRecordException;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/** The transport of work without HTTP: runs it if its attempt may run, and gives every caller the result. Thread-safe. */
final class WorkRunner {
    private final Engine engine;
    private final ResultThreads results;

    WorkRunner(Engine engine, ResultThreads results) {
        this.engine = engine;
        this.results = results;
    }

    <T> T run(
            IdempotentCall call,
            IdempotencePolicy policy,
            Duration maxWait,
            ResultCodec<T> codec,
            IdempotentWork<T> work)
            throws Exception {
        Decision decision = engine.claim(call, policy);
        if (decision instanceof Decision.Substitute substitute) {
            return instead(call.id(), codec, Engine.waitFor(engine.await(substitute, call, policy, maxWait)));
        }
        ClaimedExecution execution = (ClaimedExecution) decision;
        return entered(execution, () -> run(execution, codec, work));
    }

    <T> CompletableFuture<T> runAsync(
            IdempotentCall call,
            IdempotencePolicy policy,
            Duration maxWait,
            ResultCodec<T> codec,
            IdempotentWork<? extends CompletionStage<T>> work) {
        Decision decision = engine.claim(call, policy);
        CompletableFuture<T> result = new CompletableFuture<>();
        if (decision instanceof ClaimedExecution execution) {
            begin(execution, work)
                    .whenComplete((value, failure) -> complete(
                            result,
                            () -> failure == null
                                    ? succeeded(execution, codec, value)
                                    : failedAsync(execution, codec, failure)));
        } else {
            Decision.Substitute substitute = (Decision.Substitute) decision;
            CompletableFuture<Decision.Substitute> decided = engine.await(substitute, call, policy, maxWait);
            Runnable end = () -> complete(result, () -> instead(call.id(), codec, decided.join()));
            if (decided.isDone()) {
                end.run();
            } else {
                decided.whenComplete((after, never) -> results.run(end));
            }
        }
        return result;
    }

    private static <T> CompletionStage<T> begin(
            ClaimedExecution execution, IdempotentWork<? extends CompletionStage<T>> work) {
        try {
            return Objects.requireNonNull(
                    entered(execution, () -> work(execution, work)), "the work returned null instead of a future");
        } catch (Throwable e) {
            return CompletableFuture.failedFuture(e);
        }
    }

    private static <T> T entered(ClaimedExecution execution, Callable<T> work) throws Exception {
        Runnable leave;
        try {
            leave = execution.enter();
        } catch (Throwable e) {
            // Perhaps memory ran out. Nothing ran, and nothing else would end the execution.
            execution.finishWithoutResult(Verdict.RELEASE);
            throw e;
        }
        try {
            return work.call();
        } finally {
            leave.run();
        }
    }

    private static <T> T work(ClaimedExecution execution, IdempotentWork<T> work) throws Exception {
        Runnable leaveAttempt = execution.enterAttempt();
        try {
            return work.run(execution);
        } finally {
            leaveAttempt.run();
        }
    }

    private interface ThrowingSupplier<T> {
        T get() throws Throwable;
    }

    private static <T> void complete(CompletableFuture<T> result, ThrowingSupplier<T> ending) {
        try {
            result.complete(ending.get());
        } catch (Throwable e) {
            result.completeExceptionally(e);
        }
    }

    /** The outcome for an attempt that did not run. */
    private <T> T instead(IdempotenceId id, ResultCodec<T> codec, Decision.Substitute decision) {
        if (decision instanceof Decision.Replay replay) {
            return decoded(id, codec, replay.result());
        }
        throw exception((Decision.Refuse) decision, id);
    }

    private <T> T run(ClaimedExecution execution, ResultCodec<T> codec, IdempotentWork<T> work) throws Exception {
        T result;
        try {
            result = work(execution, work);
        } catch (Throwable e) {
            Decision.Replay instead = failed(execution, e);
            if (instead == null) {
                throw e;
            }
            return decoded(execution.id(), codec, instead.result());
        }
        return succeeded(execution, codec, result);
    }

    private <T> T failedAsync(ClaimedExecution execution, ResultCodec<T> codec, Throwable failure) throws Throwable {
        // The stages of a future wrap its failure.
        Throwable e =
                failure instanceof CompletionException && failure.getCause() != null ? failure.getCause() : failure;
        Decision.Replay instead = failed(execution, e);
        if (instead == null) {
            throw e;
        }
        return decoded(execution.id(), codec, instead.result());
    }

    /** The result that the caller gets instead of the failure, or null. */
    private static Decision.@Nullable Replay failed(ClaimedExecution execution, Throwable e) {
        Decision.Substitute canonical =
                execution.finishWithoutResult(execution.byException(e)).orElse(null);
        if (e instanceof Exception && canonical instanceof Decision.Replay replay) {
            Events.LOG.warn(
                    "the work of a late owner failed; its caller gets the result of the one that overtook it", e);
            return replay;
        }
        return null;
    }

    private <T> T succeeded(ClaimedExecution execution, ResultCodec<T> codec, T result) {
        byte[] stored;
        try {
            stored = result == null ? StoredResult.nothing() : StoredResult.value(codec.encode(result));
        } catch (Throwable e) {
            // The work took effect: it must never run again, whatever happens to its result.
            execution.finishWithoutResult(Verdict.KEEP);
            throw e;
        }
        Decision.Substitute instead = execution.finish(Verdict.KEEP, stored).orElse(null);
        if (instead instanceof Decision.Refuse refuse) {
            throw exception(refuse, execution.id());
        }
        return instead instanceof Decision.Replay replay ? decoded(execution.id(), codec, replay.result()) : result;
    }

    @SuppressWarnings("NullAway") // a work whose result is null gets it back
    private <T> T decoded(IdempotenceId id, ResultCodec<T> codec, byte[] result) {
        byte[] value;
        try {
            value = StoredResult.kind(result) == StoredResult.NULL ? null : StoredResult.valueOf(result);
        } catch (CorruptRecordException e) {
            throw exception(engine.unreadable(id, e), id);
        }
        try {
            return value == null ? null : codec.decode(value);
        } catch (Exception | LinkageError e) {
            // Not the exception itself: nothing ran, so it must not look like a failure of the work.
            Events.within(
                    id,
                    () -> Events.LOG.warn(
                            "the codec cannot decode a stored result; its caller is refused as result-unavailable", e));
            throw new ExecutionRefusedException(Refusal.RESULT_UNAVAILABLE, id, Duration.ZERO, e);
        }
    }

    private static ExecutionRefusedException exception(Decision.Refuse refuse, IdempotenceId id) {
        return new ExecutionRefusedException(refuse.refusal(), id, refuse.retryAfter(), null);
    }
}
