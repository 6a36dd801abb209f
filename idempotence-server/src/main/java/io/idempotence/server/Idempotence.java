package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import io.idempotence.server.storage.ClaimRequest;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;

/**
 * Lets a logical call run once, and gives every later attempt what the first one got (promises P2 to P6).
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
 * <p>A storage that does not respond holds no request for long. After repeated failures or slow calls a circuit breaker opens: attempts
 * are refused as storage-unavailable at once, until a probe in the background finds that the storage is back. The listener is called
 * ({@link IdempotenceListener#onStorage}).
 *
 * <p>Its threads are daemons that exist only while there is something to do: up to eight {@code idempotence-writes} for ends that the
 * storage could not take when they were due, one {@code idempotence-give-backs} for claims whose replies got lost, up to 17 {@code
 * idempotence-renewals} for the leases of running handlers, one {@code idempotence-polls} and one {@code idempotence-timeouts} for
 * duplicates that wait, and up to four {@code idempotence-probes} while the storage fails.
 *
 * <p>Thread-safe; one per service is enough. Defaults: namespace {@code default}, {@link IdempotencePolicy#defaults()}, no listener.
 */
public final class Idempotence implements AutoCloseable {
    private final String namespace;
    private final IdempotencePolicy policy;
    private final EngineParts parts;
    private final Engine engine;
    private final SecureRandom random = new SecureRandom();

    /** For tests that lose more calls than any storage does. */
    Idempotence withoutCircuitBreaker() {
        parts.guard().disableBreaker();
        return this;
    }

    private Idempotence(Builder builder) {
        this.namespace = builder.namespace;
        this.policy = builder.policy;
        this.parts =
                EngineParts.over(builder.storage, builder.namespace, new Events(builder.listener), builder.maxWaiting);
        this.engine = new Engine(namespace, parts);
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
     * What decides: for transports, such as the {@code IdempotenceFilter}.
     *
     * @return the engine of this instance
     */
    public Engine engine() {
        return engine;
    }

    /**
     * Saves an ID unless it is there, in one atomic step. A saved ID stays saved until {@link #delete} or until retention ends, also if
     * this process dies.
     *
     * @param id the ID
     * @return true: saved now, run. False: seen before, do not run
     * @throws StorageUnavailableException if the storage cannot tell; do not run, and ask again later. An ID that was saved
     *     although no reply came is given back as soon as the storage responds; until then this process gets this exception, and
     *     another one may get false
     * @throws CorruptRecordException if there is a record that cannot be read; do not run
     */
    public boolean saveIfAbsent(IdempotenceId id) {
        // Nobody completes a saved ID: with a lease as long as its retention it is never abandoned.
        Duration retention = policy.retention();
        ClaimRequest request =
                new ClaimRequest(savedKey(id), Fingerprint.NONE, Owner.random(random), retention, retention, false);
        boolean saved;
        try {
            saved = parts.claims().save(id, request);
        } catch (RuntimeException e) {
            parts.events().storageFailed(id, "an ID could not be saved", e);
            throw e;
        }
        parts.events().publish(saved ? IdempotenceEvent.CLAIMED : IdempotenceEvent.REPLAYED, id);
        return saved;
    }

    /**
     * {@link #saveIfAbsent(IdempotenceId)} for an ID that is text.
     *
     * @param id the ID
     * @return true: saved now, run. False: seen before, do not run
     * @throws IllegalArgumentException if {@code id} is not 1 to 255 printable ASCII characters
     * @throws StorageUnavailableException if the storage cannot tell; do not run, and ask again later
     * @throws CorruptRecordException if there is a record that cannot be read; do not run
     */
    public boolean saveIfAbsent(String id) {
        return saveIfAbsent(new IdempotenceId(id));
    }

    /**
     * Forgets an ID that {@link #saveIfAbsent} saved, so that it may run again. For business code that knows that nothing took effect.
     *
     * @param id the ID
     * @return whether it was there
     * @throws StorageUnavailableException if the storage cannot tell
     */
    public boolean delete(IdempotenceId id) {
        StorageKey key = savedKey(id);
        return parts.guard().call(() -> parts.storage().delete(key));
    }

    /**
     * {@link #delete(IdempotenceId)} for an ID that is text.
     *
     * @param id the ID
     * @return whether it was there
     * @throws IllegalArgumentException if {@code id} is not 1 to 255 printable ASCII characters
     * @throws StorageUnavailableException if the storage cannot tell
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
        Decision decision = engine.claimAs(RecordKind.EXECUTE, call, policy);
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
            Optional<Decision> canonical = execution.finishWithoutResult(execution.byException(e));
            if (e instanceof Exception && canonical.orElse(null) instanceof Decision.Replay replay) {
                Events.LOG.warn(
                        "the work of a late owner failed; its caller gets the result of the one that overtook it", e);
                return decoded(execution.id(), codec, replay.result());
            }
            throw e;
        }
        byte[] stored;
        try {
            stored = result == null ? StoredResult.nothing() : StoredResult.value(codec.encode(result));
        } catch (Throwable e) {
            // The work took effect: it must never run again, whatever became of its result.
            execution.finishWithoutResult(Verdict.KEEP);
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
            throw exception(engine.unreadable(id, e), id);
        }
        // What the codec throws is the application's.
        return value == null ? null : codec.decode(value);
    }

    private static ExecutionRefusedException exception(Decision.Refuse refuse, IdempotenceId id) {
        return new ExecutionRefusedException(refuse.refusal(), id, refuse.retryAfter());
    }

    private StorageKey savedKey(IdempotenceId id) {
        return RecordKind.SAVE.key(namespace, IdempotentCall.of(id));
    }

    /**
     * Tries once more to make every write that still waits, stops the background threads, then closes the storage. Closing twice
     * does nothing. Close it when the handlers have ended: from here on no lease is renewed. If the storage does not answer, it
     * takes up to 10 seconds; an end that is not written by then is given up, and the listener is told ({@link
     * IdempotenceEvent#UNKNOWN}).
     */
    @Override
    public void close() {
        parts.close();
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
