package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import io.idempotence.server.storage.ClaimRequest;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.RecordState;
import io.idempotence.server.storage.Resolution;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Decides which attempt at a logical call runs and what all the others get (promises P2 to P6).
 *
 * <p>A servlet application hands it to the {@code IdempotenceFilter} and is done. Business code without HTTP, such as a message
 * consumer, calls {@link #execute}, or decides for itself with {@link #saveIfAbsent} and {@link #delete}:
 *
 * <pre>{@code
 * if (idempotence.saveIfAbsent(id)) {
 *     try {
 *         payments.charge(order);
 *     } catch (CardServiceDownException e) {
 *         idempotence.delete(id); // nothing was charged: let the next attempt run
 *         throw e;
 *     }
 * }
 * }</pre>
 *
 * <p>While a handler or work runs, the MDC key {@code idempotenceId} of its thread is its ID, so that the application's log
 * pattern can show it.
 *
 * <p>IDs of requests, of {@code execute} and of {@code saveIfAbsent} do not meet: a handler may use the ID of its request with either.
 *
 * <p>A storage that does not answer holds no request for long. After repeated failures or slow calls a circuit breaker opens: attempts
 * are refused as storage-unavailable at once, until a probe in the background finds that the storage is back. The listener is told
 * ({@link IdempotenceListener#onStorage}).
 *
 * <p>It has few threads of its own, all daemons that exist only while there is something to do: up to eight
 * {@code idempotence-writes} for ends that the storage could not take when they were due, one {@code idempotence-give-backs} for
 * claims whose answers got lost, {@code idempotence-renewals} for the leases of running
 * handlers (one, and up to 16 more while several are due at once), one {@code idempotence-polls} and one {@code
 * idempotence-timeouts} for duplicates that wait, and up to four {@code idempotence-probes} while the storage fails.
 *
 * <p>Thread-safe; one per service is enough. Defaults: namespace {@code default}, {@link IdempotencePolicy#defaults()}, no listener.
 */
public final class Idempotence implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Idempotence.class);

    static final Duration SOONEST_RETRY = Duration.ofMillis(20);
    private static final Duration LATEST_RETRY = Duration.ofMillis(500);
    private static final Duration STORAGE_RETRY = Duration.ofSeconds(1);

    // A handler may well use its request's ID with execute or saveIfAbsent: their records must not meet the request's
    // own.
    static final String REQUESTED = "";
    static final String EXECUTED = "execute";
    static final String SAVED = "saveIfAbsent";

    private final String namespace;
    private final IdempotencePolicy policy;
    private final Engine engine;
    /** Claims that may have been stored in vain. */
    private final CountedKeys undoing = new CountedKeys();

    private final SecureRandom random = new SecureRandom();

    /** For tests that lose more calls than any storage does. */
    Idempotence withoutCircuitBreaker() {
        engine.guard().disableBreaker();
        return this;
    }

    private Idempotence(Builder builder) {
        this.namespace = builder.namespace;
        this.policy = builder.policy;
        this.engine = Engine.over(builder.storage, builder.namespace, new Events(builder.listener), builder.maxWaiting);
    }

    /**
     * An instance with every default.
     *
     * @param storage remembers the IDs; closed by {@link #close}
     * @return the instance
     */
    public static Idempotence over(IdempotenceStorage storage) {
        return builder(storage).build();
    }

    /**
     * A builder that has every default.
     *
     * @param storage remembers the IDs; closed by {@link #close}
     * @return a new builder
     */
    public static Builder builder(IdempotenceStorage storage) {
        return new Builder(storage);
    }

    /**
     * The policy used where a call does not bring its own.
     *
     * @return {@link IdempotencePolicy#defaults()} unless set
     */
    public IdempotencePolicy policy() {
        return policy;
    }

    /**
     * Saves an ID unless it is there, in one atomic step. A saved ID stays saved until {@link #delete} or until retention ends, also if
     * this process dies.
     *
     * @param id the ID
     * @return true: saved now, run. False: seen before, do not run
     * @throws StorageUnavailableException if the storage cannot say; do not run, and ask again later. An ID that was saved
     *     although no answer came is given back as soon as the storage answers; until then this exception is thrown here, and
     *     another process may see false
     * @throws CorruptRecordException if there is a record that cannot be read; do not run
     */
    public boolean saveIfAbsent(IdempotenceId id) {
        boolean saved;
        try {
            saved = save(id);
        } catch (RuntimeException e) {
            engine.events().storageFailed(id, "an ID could not be saved", e);
            throw e;
        }
        engine.events().publish(saved ? IdempotenceEvent.CLAIMED : IdempotenceEvent.REPLAYED, id);
        return saved;
    }

    private boolean save(IdempotenceId id) {
        ClaimRequest request = new ClaimRequest(
                savedKey(id),
                Fingerprint.NONE,
                Owner.random(random),
                // A saved ID has no owner whose absence could be noticed: it is never abandoned.
                policy.retention(),
                policy.retention(),
                false);
        // Others take an ID that is there for done, and forget their message: it must not be there for a moment only.
        BooleanSupplier isThere = () -> engine.storage().find(request.key()).isPresent();
        // Asked on both sides of the claim: it may be given back while the claim is under way.
        boolean undone = undoing.contains(request.key());
        boolean saved = claim(id, request, isThere) instanceof ClaimResult.Claimed;
        if (!saved && (undone || undoing.contains(request.key()))) {
            throw new StorageUnavailableException(
                    "this ID may have been saved in vain when the storage did not answer, and is being given back; ask again",
                    null);
        }
        return saved;
    }

    /**
     * {@link #saveIfAbsent(IdempotenceId)} for an ID that is text.
     *
     * @param id the ID
     * @return as there
     * @throws IllegalArgumentException if {@code id} is not 1 to 255 printable ASCII characters
     * @throws StorageUnavailableException as there
     * @throws CorruptRecordException as there
     */
    public boolean saveIfAbsent(String id) {
        return saveIfAbsent(new IdempotenceId(id));
    }

    /**
     * Forgets an ID that {@link #saveIfAbsent} saved, so that it may run again. For business code that knows that nothing took effect.
     *
     * @param id the ID
     * @return whether it was there
     * @throws StorageUnavailableException if the storage cannot say
     */
    public boolean delete(IdempotenceId id) {
        StorageKey key = savedKey(id);
        return engine.guard().call(() -> engine.storage().delete(key));
    }

    /**
     * {@link #delete(IdempotenceId)} for an ID that is text.
     *
     * @param id the ID
     * @return as there
     * @throws IllegalArgumentException if {@code id} is not 1 to 255 printable ASCII characters
     * @throws StorageUnavailableException as there
     */
    public boolean delete(String id) {
        return delete(new IdempotenceId(id));
    }

    /**
     * Runs work whose result is text at most once for an ID, and gives every later call the first one's result.
     *
     * @param id the ID
     * @param work runs on this thread, if it runs
     * @return the work's result, now or from the first time; null if that was its result
     * @throws ExecutionRefusedException if the work did not run and there is no result of it
     * @throws Exception what the work throws; the policy then says whether the ID is kept
     */
    public String execute(IdempotenceId id, Callable<String> work) throws Exception {
        return execute(id, ResultCodec.text(), work);
    }

    /**
     * Runs work at most once for an ID, and gives every later call the first one's result.
     *
     * @param id the ID. It must name the operation and, where there are several, the tenant: two consumers of one event that use
     *     its bare ID would get each other's result. {@link io.idempotence.IdempotenceIdGenerator#fromFields} makes IDs of an
     *     operation and values; for a bare ID there is {@link #execute(IdempotentCall, IdempotencePolicy, ResultCodec, Work)}
     * @param codec stores the result
     * @param work runs on this thread, if it runs
     * @param <T> the result
     * @return the work's result, now or from the first time; null if that was its result
     * @throws ExecutionRefusedException if the work did not run and there is no result of it
     * @throws Exception what the work throws; the policy then says whether the ID is kept
     */
    public <T> T execute(IdempotenceId id, ResultCodec<T> codec, Callable<T> work) throws Exception {
        Objects.requireNonNull(work, "work");
        return execute(id, codec, (Work<T>) execution -> work.call());
    }

    /**
     * Runs work that decides at run time what becomes of its ID.
     *
     * @param id the ID
     * @param codec stores the result
     * @param work runs on this thread, if it runs
     * @param <T> the result
     * @return the work's result, now or from the first time; null if that was its result
     * @throws ExecutionRefusedException if the work did not run and there is no result of it, or if the work says that it was
     *     {@linkplain IdempotentExecution#overtaken() overtaken} and there is no result of the other one
     * @throws Exception what the work throws; the policy then says whether the ID is kept
     */
    public <T> T execute(IdempotenceId id, ResultCodec<T> codec, Work<T> work) throws Exception {
        return execute(IdempotentCall.of(id), policy, codec, work);
    }

    /**
     * Runs work of one operation among several.
     *
     * @param call names the operation and, where there are several, the tenant, so that IDs of others do not meet; with a
     *     fingerprint the same ID is refused for anything else ({@link Refusal#KEY_REUSED})
     * @param policy of the operation
     * @param codec stores the result
     * @param work runs on this thread, if it runs
     * @param <T> the result
     * @return the work's result, now or from the first time; null if that was its result
     * @throws ExecutionRefusedException as in {@link #execute(IdempotenceId, ResultCodec, Work)}
     * @throws Exception what the work throws; the policy then says whether the ID is kept
     */
    public <T> T execute(IdempotentCall call, IdempotencePolicy policy, ResultCodec<T> codec, Work<T> work)
            throws Exception {
        Objects.requireNonNull(codec, "codec");
        Objects.requireNonNull(work, "work");
        Decision decision = claim(call, request(EXECUTED, call, policy), policy);
        if (decision instanceof Decision.Run run) {
            Runnable leave = run.execution().enter();
            try {
                return run(run.execution(), codec, work);
            } finally {
                leave.run();
            }
        }
        if (decision instanceof Decision.Replay replay) {
            return decoded(call.id(), codec, replay.result());
        }
        throw exception((Decision.Refuse) decision, call.id());
    }

    private <T> T run(ClaimedExecution execution, ResultCodec<T> codec, Work<T> work) throws Exception {
        T result;
        try {
            result = work.run(execution);
        } catch (Throwable e) {
            Optional<Decision> canonical = execution.finish(execution.byException(e), StoredResult.unavailable());
            if (e instanceof Exception && canonical.orElse(null) instanceof Decision.Replay replay) {
                LOG.warn("the work of a late owner failed; its caller gets the result of the one that overtook it", e);
                return decoded(execution.id(), codec, replay.result());
            }
            throw e;
        }
        byte[] stored;
        try {
            stored = result == null ? StoredResult.nothing() : StoredResult.value(codec.encode(result));
        } catch (Throwable e) {
            // The work took effect: it must never run again, whatever became of its result.
            execution.finish(Verdict.KEEP, StoredResult.unavailable());
            throw e;
        }
        Decision instead = execution.finish(Verdict.KEEP, stored).orElse(null);
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
            throw exception(unreadable(id, e), id);
        }
        // What the codec throws is the application's.
        return value == null ? null : codec.decode(value);
    }

    private static ExecutionRefusedException exception(Decision.Refuse refuse, IdempotenceId id) {
        return new ExecutionRefusedException(refuse.refusal(), id, refuse.retryAfter());
    }

    /**
     * Asks for the right to run: for transports. That is one claim in the storage, made once more if its answer is lost or comes later
     * than the lease lasts. With {@code RECOVER} an abandoned execution is resolved and then claimed again.
     *
     * @param call the attempt
     * @param policy of the operation
     * @return what to do; a storage that fails is a refusal, never an exception
     */
    public Decision claim(IdempotentCall call, IdempotencePolicy policy) {
        return claim(call, request(REQUESTED, call, policy), policy);
    }

    /**
     * Asks for the right to run, and waits while another attempt has it: for transports. The storage is asked once; then the
     * execution itself tells, or, if it runs in another process, the storage is polled for all that wait here. Waiting holds no thread.
     *
     * @param call the attempt
     * @param policy of the operation
     * @param patience how long to wait at most; zero does not wait
     * @return complete at once unless the first attempt runs. A decision after waiting is never {@link Decision.Run}: when the
     *     first attempt is released, those who waited are refused as in-progress and may ask again at once. Completed on any
     *     thread; cancel it to stop waiting
     */
    public CompletableFuture<Decision> claim(IdempotentCall call, IdempotencePolicy policy, Duration patience) {
        ClaimRequest request = request(REQUESTED, call, policy);
        Decision decision = claim(call, request, policy);
        if (patience.compareTo(Duration.ZERO) <= 0
                || !(decision instanceof Decision.Refuse refuse)
                || refuse.refusal() != Refusal.IN_PROGRESS) {
            return CompletableFuture.completedFuture(decision);
        }
        CompletableFuture<Decision> waiter =
                engine.waiters().await(request, patience, decision, () -> look(call.id(), request));
        waiter.thenAccept(told -> toldAfterWaiting(call.id(), told));
        return waiter;
    }

    /**
     * Reports that a stored result cannot be read, which is then neither given again nor run again (T20): for transports, each of
     * which has a form of its own.
     *
     * @param id whose result it is
     * @param cause says what is wrong with it
     * @return what to do instead of the {@link Decision.Replay}
     */
    public Decision.Refuse unreadable(IdempotenceId id, CorruptRecordException cause) {
        Objects.requireNonNull(id, "id");
        Objects.requireNonNull(cause, "cause");
        return refused(id, "a stored result cannot be read, its attempt was refused", cause);
    }

    private Decision.Refuse refused(IdempotenceId id, String what, RuntimeException cause) {
        engine.events().storageFailed(id, what, cause);
        return new Decision.Refuse(Refusal.STORAGE_UNAVAILABLE, STORAGE_RETRY);
    }

    /** Counts as if it had not waited. The log has said why already, once for all. */
    private void toldAfterWaiting(IdempotenceId id, Decision told) {
        if (told instanceof Decision.Replay) {
            engine.events().publish(IdempotenceEvent.REPLAYED, id);
        } else if (told instanceof Decision.Refuse refuse && told != WaitingDuplicates.CLOSED) {
            switch (refuse.refusal()) {
                case RESULT_UNAVAILABLE -> engine.events().publish(IdempotenceEvent.REPLAYED, id);
                case OUTCOME_UNKNOWN -> engine.events().publish(IdempotenceEvent.UNKNOWN, id);
                case KEY_REUSED -> engine.events().publish(IdempotenceEvent.MISMATCH, id);
                case STORAGE_UNAVAILABLE -> engine.events().publish(IdempotenceEvent.STORAGE_ERROR, id);
                // Counted when it came.
                default -> {}
            }
        }
    }

    private ClaimRequest request(String kind, IdempotentCall call, IdempotencePolicy policy) {
        return new ClaimRequest(
                key(namespace, kind, call),
                call.fingerprint(),
                Owner.random(random),
                policy.lease(),
                policy.retention(),
                policy.onAbandoned() == IdempotencePolicy.OnAbandoned.RE_EXECUTE);
    }

    private Decision claim(IdempotentCall call, ClaimRequest request, IdempotencePolicy policy) {
        long start = engine.events().startOfOverhead();
        Decision decision = decide(call, request, policy);
        if (decision instanceof Decision.Run run) {
            run.execution().claimed(start);
        } else {
            boolean replays = decision instanceof Decision.Replay;
            engine.events()
                    .overhead(
                            replays ? IdempotenceListener.Outcome.REPLAY : IdempotenceListener.Outcome.REFUSE,
                            engine.events().overheadSince(start));
        }
        return decision;
    }

    private Decision decide(IdempotentCall call, ClaimRequest request, IdempotencePolicy policy) {
        IdempotenceId id = call.id();
        try {
            // Asked on both sides of the claim: the result may be settled while its answer is under way.
            boolean unsettled = engine.unsettled().contains(request.key());
            long left = System.nanoTime();
            ClaimResult result = claim(id, request);
            if (result instanceof ClaimResult.Abandoned abandoned
                    && policy.onAbandoned() == IdempotencePolicy.OnAbandoned.RECOVER) {
                result = recover(call, policy, request, abandoned);
            }
            if (isTooLate(result, left, policy)) {
                // The answer took longer than the lease: another owner may run by now. Whoever holds its claim still
                // gets the same answer again, and a new lease (T2).
                left = System.nanoTime();
                ClaimResult again = claim(id, request);
                result = isTakeOver(result) ? takenOver(again) : again;
                if (isTooLate(result, left, policy)) {
                    undo(id, request, () -> true);
                    throw new StorageUnavailableException(
                            "the storage answers later than the lease of " + policy.lease() + " lasts", null);
                }
            }
            if (result instanceof ClaimResult.Completed
                    && (unsettled || engine.unsettled().contains(request.key()))) {
                engine.events().publish(IdempotenceEvent.IN_PROGRESS, id);
                return new Decision.Refuse(Refusal.IN_PROGRESS, SOONEST_RETRY);
            }
            return decide(call, policy, result, left);
        } catch (RuntimeException e) {
            // Whatever a storage throws, it has not said that this attempt may run.
            return refused(id, "an attempt was refused, nothing ran", e);
        }
    }

    private static boolean isTooLate(ClaimResult result, long left, IdempotencePolicy policy) {
        return result instanceof ClaimResult.Claimed
                && System.nanoTime() - left >= policy.lease().toNanos();
    }

    /** Asks the operation's rule, and acts on what it says by compare-and-set: of all who ask at once, one runs (T7, T17). */
    private ClaimResult recover(
            IdempotentCall call, IdempotencePolicy policy, ClaimRequest request, ClaimResult.Abandoned abandoned) {
        IdempotencePolicy.Applied applied;
        try {
            applied = policy.recovery().wasApplied(call, abandoned.fence());
        } catch (Exception e) {
            if (e instanceof InterruptedException) {
                Thread.currentThread().interrupt();
            }
            engine.events().publish(IdempotenceEvent.UNKNOWN, call.id(), "the operation's recovery failed", e);
            return abandoned;
        }
        Resolution resolution;
        if (applied == IdempotencePolicy.Applied.YES) {
            resolution = Resolution.APPLIED;
        } else if (applied == IdempotencePolicy.Applied.NO) {
            resolution = Resolution.NOT_APPLIED;
        } else {
            // A rule that answers null does not know either.
            return abandoned;
        }
        engine.guard()
                .call(() -> engine.storage().resolve(request.key(), abandoned.fence(), resolution, policy.retention()));
        // Whoever was first to resolve it: the claim now tells what to do.
        return takenOver(claim(call.id(), request));
    }

    private static boolean isTakeOver(ClaimResult result) {
        return result instanceof ClaimResult.Claimed claimed && claimed.takenOver();
    }

    /** The storage knows a recovered execution as released, and does not say so itself. */
    private static ClaimResult takenOver(ClaimResult result) {
        return result instanceof ClaimResult.Claimed claimed ? new ClaimResult.Claimed(claimed.claim(), true) : result;
    }

    /** What those who wait for an execution in another process are told; null while it runs. Leaves no claim behind. */
    private @Nullable Decision look(IdempotenceId id, ClaimRequest request) {
        try {
            RecordState state = engine.guard()
                    .call(() -> engine.storage().find(request.key()))
                    .map(IdempotenceRecord::state)
                    .orElse(RecordState.RELEASED);
            return switch (state) {
                case IN_PROGRESS -> null;
                case UNKNOWN -> {
                    engine.events()
                            .log(
                                    IdempotenceEvent.UNKNOWN,
                                    id,
                                    "those who waited for an execution were refused because its outcome is not known",
                                    null);
                    yield new Decision.Refuse(Refusal.OUTCOME_UNKNOWN, Duration.ZERO);
                }
                // Asking again claims, and so acts as the policy says.
                case RELEASED, ABANDONED -> new Decision.Refuse(Refusal.IN_PROGRESS, SOONEST_RETRY);
                case COMPLETED -> engine.unsettled().contains(request.key()) ? null : result(request);
            };
        } catch (Throwable e) {
            // Whatever a storage throws: nobody would look again.
            engine.events().logStorageFailed(id, "those who waited for an execution were refused", e);
            return new Decision.Refuse(Refusal.STORAGE_UNAVAILABLE, STORAGE_RETRY);
        }
    }

    private Decision result(ClaimRequest request) {
        ClaimResult result = engine.guard().call(() -> engine.storage().claim(request));
        if (result instanceof ClaimResult.Completed completed) {
            return ended(completed.result());
        }
        if (result instanceof ClaimResult.Claimed claimed) {
            // Deleted in this very moment, and nothing will run here.
            giveBack(claimed, request);
        }
        return result instanceof ClaimResult.Mismatch
                ? new Decision.Refuse(Refusal.KEY_REUSED, Duration.ZERO)
                : new Decision.Refuse(Refusal.IN_PROGRESS, SOONEST_RETRY);
    }

    /** What everybody gets who asks for an operation that has ended with this result. */
    static Decision ended(byte[] result) {
        return StoredResult.kind(result) == StoredResult.UNAVAILABLE
                ? new Decision.Refuse(Refusal.RESULT_UNAVAILABLE, Duration.ZERO)
                : new Decision.Replay(result);
    }

    private Decision decide(IdempotentCall call, IdempotencePolicy policy, ClaimResult result, long left) {
        IdempotenceId id = call.id();
        if (result instanceof ClaimResult.Claimed claimed) {
            ClaimedExecution execution = new ClaimedExecution(engine, call, claimed, left, policy);
            engine.leases().started(execution);
            if (claimed.takenOver()) {
                engine.events()
                        .publish(
                                IdempotenceEvent.TAKE_OVER,
                                id,
                                "an abandoned execution is run again, as its policy says");
            } else {
                engine.events().publish(IdempotenceEvent.CLAIMED, id);
            }
            return new Decision.Run(execution);
        }
        if (result instanceof ClaimResult.Completed completed) {
            engine.events().publish(IdempotenceEvent.REPLAYED, id);
            return ended(completed.result());
        }
        if (result instanceof ClaimResult.InProgress inProgress) {
            engine.events().publish(IdempotenceEvent.IN_PROGRESS, id);
            return new Decision.Refuse(
                    Refusal.IN_PROGRESS, retryAfter(policy.lease().minus(inProgress.leaseLeft())));
        }
        if (result instanceof ClaimResult.Mismatch) {
            engine.events().publish(IdempotenceEvent.MISMATCH, id);
            return new Decision.Refuse(Refusal.KEY_REUSED, Duration.ZERO);
        }
        // Abandoned or marked unknown: the caller cannot tell them apart, and must not act on either.
        engine.events()
                .publish(IdempotenceEvent.UNKNOWN, id, "an attempt was refused because the outcome is not known");
        return new Decision.Refuse(Refusal.OUTCOME_UNKNOWN, Duration.ZERO);
    }

    /** Half as long again as it has run already: few polls for a long handler, quick ones for a short one, without any state. */
    private static Duration retryAfter(Duration running) {
        Duration half = running.dividedBy(2);
        if (half.compareTo(SOONEST_RETRY) < 0) {
            return SOONEST_RETRY;
        }
        return half.compareTo(LATEST_RETRY) > 0 ? LATEST_RETRY : half;
    }

    private ClaimResult claim(IdempotenceId id, ClaimRequest request) {
        return claim(id, request, () -> true);
    }

    private ClaimResult claim(IdempotenceId id, ClaimRequest request, BooleanSupplier mayClaimToUndo) {
        try {
            return engine.guard().call(() -> engine.storage().claim(request));
        } catch (StorageUnavailableException first) {
            if (first.certainty() != StorageUnavailableException.Certainty.NONE) {
                if (first.certainty() == StorageUnavailableException.Certainty.TO_GIVE_BACK) {
                    undo(id, request, mayClaimToUndo);
                }
                throw first;
            }
            try {
                // The lost reply may have been a yes: the same owner gets the same answer (T2, T21).
                return engine.guard().call(() -> engine.storage().claim(request));
            } catch (StorageUnavailableException second) {
                second.addSuppressed(first);
                undo(id, request, mayClaimToUndo);
                throw second;
            }
        }
    }

    /**
     * Neither answer came, yet a claim may have been stored, and nothing will run under it. Left alone it would show as abandoned, a
     * false "outcome unknown". Asking once more as the same owner tells (T2). If there was none, what is left is a released
     * record, which keeps out a claim that is still under way (T8). It takes nothing over: that would stop an owner, and nothing
     * would run instead.
     */
    private void undo(IdempotenceId id, ClaimRequest request, BooleanSupplier mayClaim) {
        ClaimRequest again = new ClaimRequest(
                request.key(),
                request.fingerprint(),
                request.owner(),
                request.lease(),
                request.retention(),
                false,
                true);
        Runnable giveBack = () -> {
            if (mayClaim.getAsBoolean() && engine.storage().claim(again) instanceof ClaimResult.Claimed claimed) {
                giveBack(claimed, request);
            }
        };
        undoing.add(request.key());
        engine.giveBacks()
                .retry(
                        id,
                        0,
                        // It asks as its owner: whoever has the ID by then loses nothing.
                        request.retention(),
                        giveBack,
                        () -> undoing.remove(request.key()));
    }

    private void giveBack(ClaimResult.Claimed claimed, ClaimRequest request) {
        if (claimed.takenOver() && request.takeOver()) {
            engine.abandon(claimed.claim());
        } else {
            engine.storage().release(claimed.claim(), request.retention());
        }
    }

    static StorageKey key(String namespace, String kind, IdempotentCall call) {
        String operation = call.operation().isEmpty() ? kind : kind + ":" + call.operation();
        return StorageKey.of(namespace, call.scope(), operation, call.id());
    }

    private StorageKey savedKey(IdempotenceId id) {
        return key(namespace, SAVED, IdempotentCall.of(id));
    }

    /**
     * Tries once more to make every write that still waits, stops the background threads, then closes the storage. Closing twice
     * does nothing. Close it when the handlers have ended: from here on no lease is renewed. If the storage does not answer, it
     * takes up to 10 seconds; an end that is not written by then is given up, and the listener is told ({@link
     * IdempotenceEvent#UNKNOWN}).
     */
    @Override
    public void close() {
        engine.close();
    }

    /**
     * Work that knows its execution.
     *
     * @param <T> the result
     */
    @FunctionalInterface
    public interface Work<T> {
        /**
         * Does the work.
         *
         * @param execution tells ID and fence, and takes the decision what becomes of the ID
         * @return the result
         * @throws Exception if it fails
         */
        T run(IdempotentExecution execution) throws Exception;
    }

    /** Builds an {@link Idempotence}. Not thread-safe. */
    public static final class Builder {
        private final IdempotenceStorage storage;
        private String namespace = "default";
        private IdempotencePolicy policy = IdempotencePolicy.defaults();
        private int maxWaiting = 10_000;
        private @Nullable IdempotenceListener listener;

        private Builder(IdempotenceStorage storage) {
            this.storage = Objects.requireNonNull(storage, "storage");
        }

        /**
         * Names the service, so that several may share one storage. Services that are all {@code default} on one storage share
         * their IDs, and nothing tells: a request of one may be refused, or answered, as that of another.
         *
         * @param namespace 1 to 64 characters: a letter or digit, then letters, digits, dot, underscore, hyphen; default
         *     {@code default}
         * @return this
         * @throws IllegalArgumentException if it is not of that form
         */
        public Builder namespace(String namespace) {
            this.namespace = StorageKey.checkedNamespace(namespace);
            return this;
        }

        /**
         * Sets the policy.
         *
         * @param policy used where a call does not bring its own
         * @return this
         */
        public Builder policy(IdempotencePolicy policy) {
            this.policy = Objects.requireNonNull(policy, "policy");
            return this;
        }

        /**
         * Sets the listener.
         *
         * @param listener is told every event
         * @return this
         */
        public Builder listener(IdempotenceListener listener) {
            this.listener = Objects.requireNonNull(listener, "listener");
            return this;
        }

        /**
         * Sets how many duplicates may wait at once for a first attempt to end. One more is refused at once.
         *
         * @param requests 0 to 1,000,000; default 10,000
         * @return this
         * @throws IllegalArgumentException if out of range
         */
        public Builder maxWaiting(int requests) {
            if (requests < 0 || requests > 1_000_000) {
                throw new IllegalArgumentException("maxWaiting must be 0 to 1000000, got " + requests);
            }
            this.maxWaiting = requests;
            return this;
        }

        /**
         * The instance.
         *
         * @return a new instance; close it
         */
        public Idempotence build() {
            return new Idempotence(this);
        }
    }
}
