package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * The server half: decides which attempt of a logical call runs and what all others get (promises P2 to P6).
 *
 * <p>A servlet application passes it to the {@code IdempotenceFilter}. Business code without HTTP, such as a message consumer, calls {@link
 * #execute}, or decides for itself with {@link #saveIfAbsent} and {@link #delete}:
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
 * <p>While a handler or work runs, the MDC key {@code idempotenceId} of its thread is its ID, so that the application's log pattern can
 * show it.
 *
 * <p>Requests, {@code execute} and {@code saveIfAbsent} have separate records: a handler may use the ID of its request with either.
 *
 * <p>A storage that does not respond holds no request for long. After repeated failures or slow calls a circuit breaker opens. Attempts are
 * then refused as storage-unavailable at once, until a background probe finds that the storage is back. {@link
 * IdempotenceListener#onStorage} is called at both times.
 *
 * <p>Its threads are daemons that exist only while there is work: up to eight {@code idempotence-writes} for completions that the storage
 * did not take at once or that follow their response, up to four {@code idempotence-give-backs} for claims under which nothing
 * runs, {@code idempotence-renewals} for the leases of running handlers (one, and up to 16 more while several are due at once), one
 * {@code idempotence-polls} and one {@code idempotence-timeouts} for waiting duplicates, up to 16 {@code idempotence-results} for the
 * results of those that waited in {@link #executeAsync}, and up to four {@code idempotence-probes} while the storage fails.
 *
 * <p>Thread-safe; one per service is enough. Defaults: namespace {@code default}, {@link IdempotencePolicy#defaults()}, no listener.
 */
public final class Idempotence implements AutoCloseable {
    private final String namespace;
    private final IdempotencePolicy policy;
    private final EngineParts parts;
    private final Engine engine;
    private final WorkRunner works;
    private final SecureRandom random = new SecureRandom();

    Idempotence(String namespace, IdempotencePolicy policy, EngineParts parts) {
        this.namespace = namespace;
        this.policy = policy;
        this.parts = parts;
        this.engine = new Engine(namespace, RecordKind.REQUEST, parts);
        this.works = new WorkRunner(new Engine(namespace, RecordKind.EXECUTE, parts), parts.results());
    }

    /**
     * An instance with every default.
     *
     * @param storage keeps the records; closed by {@link #close}
     */
    public static Idempotence over(IdempotenceStorage storage) {
        return builder(storage).build();
    }

    /**
     * A builder with every default.
     *
     * @param storage keeps the records; closed by {@link #close}
     */
    public static Builder builder(IdempotenceStorage storage) {
        return new Builder(storage);
    }

    /** {@return the policy of calls that do not have their own; unless set, {@link IdempotencePolicy#defaults()}} */
    public IdempotencePolicy policy() {
        return policy;
    }

    /** {@return the engine of this instance, for transports such as the {@code IdempotenceFilter}} */
    public Engine engine() {
        return engine;
    }

    /** The operators' view of the records of this instance. Records that it resolves are kept as long as the policy says. */
    public IdempotenceAdmin admin() {
        return IdempotenceAdmin.of(parts.storage(), namespace).withRetention(policy.retention());
    }

    /**
     * Saves an ID unless it is there, in one atomic step. A saved ID stays saved until {@link #delete} or until retention ends, even if
     * this process dies.
     *
     * @return true if the ID was saved now: run. False: seen before, do not run
     * @throws StorageUnavailableException if the storage fails: do not run, and ask again later. The ID may have been saved although no
     *     reply came. It is then released as soon as the storage responds. Until then this exception is thrown here, and another process
     *     may get false
     * @throws CorruptRecordException if the record cannot be read; do not run
     */
    public boolean saveIfAbsent(IdempotenceId id) {
        // A saved ID is never completed. A lease as long as its retention keeps it from being abandoned.
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
     * @return true if the ID was saved now: run. False: seen before, do not run
     * @throws IllegalArgumentException if {@code id} is not 1 to 255 printable ASCII characters
     * @throws StorageUnavailableException if the storage fails; do not run, and ask again later
     * @throws CorruptRecordException if the record cannot be read; do not run
     */
    public boolean saveIfAbsent(String id) {
        return saveIfAbsent(new IdempotenceId(id));
    }

    /**
     * Forgets an ID that {@link #saveIfAbsent} saved, so that it may run again. Call it only if nothing took effect.
     *
     * @return whether the ID was there
     * @throws StorageUnavailableException if the storage fails; the ID may be deleted or not. Repeat the call, because nothing else
     *     does: while the ID is there, the next delivery of the message is dropped
     */
    public boolean delete(IdempotenceId id) {
        StorageKey key = savedKey(id);
        // Without a look first: who saved the ID knows what became of it.
        return parts.guard().call(() -> parts.storage().delete(key));
    }

    /**
     * {@link #delete(IdempotenceId)} for an ID that is text.
     *
     * @return whether the ID was there
     * @throws IllegalArgumentException if {@code id} is not 1 to 255 printable ASCII characters
     * @throws StorageUnavailableException if the storage fails
     */
    public boolean delete(String id) {
        return delete(new IdempotenceId(id));
    }

    /**
     * Runs work whose result is text at most once for an ID. Every later call returns the first one's result.
     *
     * @param work runs on this thread, if at all
     * @return the work's result, from this run or an earlier one; null if that was the result
     * @throws ExecutionRefusedException if the work did not run and has no stored result
     * @throws Exception what the work throws; the policy then decides whether the ID is kept
     */
    public String execute(IdempotenceId id, Callable<String> work) throws Exception {
        return execute(id, ResultCodec.text(), work);
    }

    /**
     * Runs work at most once for an ID. Every later call returns the first one's result.
     *
     * @param id the ID. It must identify the operation and, if there are several, the tenant: two consumers of one event that use its bare
     *     ID would get each other's result. {@link io.idempotence.IdempotenceIdGenerator#fromFields} makes IDs of an operation and values;
     *     for a bare ID there is {@link #execute(IdempotentCall, IdempotencePolicy, ResultCodec, IdempotentWork)}
     * @param codec encodes the result for the storage
     * @param work runs on this thread, if at all
     * @return the work's result, from this run or an earlier one; null if that was the result
     * @throws ExecutionRefusedException if the work did not run and has no stored result
     * @throws Exception what the work throws; the policy then decides whether the ID is kept
     */
    public <T> T execute(IdempotenceId id, ResultCodec<T> codec, Callable<T> work) throws Exception {
        Objects.requireNonNull(work, "work");
        return execute(id, codec, (IdempotentWork<T>) execution -> work.call());
    }

    /**
     * Runs work that may decide about its ID at run time.
     *
     * @param codec encodes the result for the storage
     * @param work runs on this thread, if at all
     * @return the work's result, from this run or an earlier one; null if that was the result
     * @throws ExecutionRefusedException if the work did not run and has no stored result, or if the work returned although it had reported
     *     that it was {@linkplain IdempotentExecution#overtaken() overtaken}, and the other execution has no result
     * @throws Exception what the work throws, unless another execution overtook it and has a result, which is then returned. The decision
     *     of the work, else the policy, decides whether the ID is kept
     */
    public <T> T execute(IdempotenceId id, ResultCodec<T> codec, IdempotentWork<T> work) throws Exception {
        return execute(IdempotentCall.of(id), policy, codec, work);
    }

    /**
     * Runs work of one operation among several.
     *
     * @param call the operation and, if there are several, the tenant: equal IDs of others are then separate. With a fingerprint, other
     *     content under the same ID is refused ({@link Refusal#KEY_REUSED})
     * @param policy the policy of the operation
     * @param codec encodes the result for the storage
     * @param work runs on this thread, if at all
     * @return the work's result, from this run or an earlier one; null if that was the result
     * @throws ExecutionRefusedException if the work did not run and has no stored result, or if the work returned although it had reported
     *     that it was {@linkplain IdempotentExecution#overtaken() overtaken}, and the other execution has no result
     * @throws Exception what the work throws, unless another execution overtook it and has a result, which is then returned. The decision
     *     of the work, else the policy, decides whether the ID is kept
     */
    public <T> T execute(IdempotentCall call, IdempotencePolicy policy, ResultCodec<T> codec, IdempotentWork<T> work)
            throws Exception {
        return execute(call, policy, Duration.ZERO, codec, work);
    }

    /**
     * Runs work of one operation, or waits for the result of another attempt that runs now.
     *
     * @param call the operation and, if there are several, the tenant
     * @param policy the policy of the operation
     * @param maxWait how long to wait while another attempt runs; zero does not wait
     * @param codec encodes the result for the storage
     * @param work runs on this thread, if at all
     * @return the work's result, from this run or another one; null if that was the result
     * @throws ExecutionRefusedException if the work did not run and has no stored result. Among the reasons: the other attempt still
     *     runs after {@code maxWait}, or was released, or this thread was interrupted while it waited. See {@link #execute(IdempotentCall,
     *     IdempotencePolicy, ResultCodec, IdempotentWork)}
     * @throws Exception what the work throws; the policy then decides whether the ID is kept
     */
    public <T> T execute(
            IdempotentCall call,
            IdempotencePolicy policy,
            Duration maxWait,
            ResultCodec<T> codec,
            IdempotentWork<T> work)
            throws Exception {
        Objects.requireNonNull(maxWait, "maxWait");
        Objects.requireNonNull(codec, "codec");
        Objects.requireNonNull(work, "work");
        return works.run(call, policy, maxWait, codec, work);
    }

    /**
     * Runs work that ends with a future, at most once for an ID.
     *
     * @param call the operation and, if there are several, the tenant
     * @param policy the policy of the operation
     * @param maxWait how long to wait, without a thread, while another attempt runs; zero does not wait
     * @param codec encodes the result for the storage
     * @param work runs on this thread, if at all. Its future's result is stored by the thread that completes the future, and before the
     *     caller gets it unless {@link IdempotencePolicy#completion()} says otherwise. Other threads are not part of the
     *     execution: see {@link IdempotentExecution#current()}
     * @return the work's result, from this run or another one. It fails with what the work throws or its future fails with, or with an
     *     {@link ExecutionRefusedException}. Cancelling it does not end the work. After a wait it is completed on one of 16 threads, so
     *     pass stages that block for long an executor of your own
     */
    public <T> CompletableFuture<T> executeAsync(
            IdempotentCall call,
            IdempotencePolicy policy,
            Duration maxWait,
            ResultCodec<T> codec,
            IdempotentWork<? extends CompletionStage<T>> work) {
        Objects.requireNonNull(maxWait, "maxWait");
        Objects.requireNonNull(codec, "codec");
        Objects.requireNonNull(work, "work");
        return works.runAsync(call, policy, maxWait, codec, work);
    }

    private StorageKey savedKey(IdempotenceId id) {
        return RecordKind.SAVE.key(namespace, IdempotentCall.of(id));
    }

    /**
     * Retries every waiting write once more, stops the background threads, then closes the storage. Closing twice does nothing. Call it
     * when the handlers have ended: no lease is renewed afterwards, and each further execution is refused as storage-unavailable. If the
     * storage does not respond, closing takes up to about 16 seconds. A completion that cannot be written is given up, and the listener
     * gets {@link IdempotenceEvent#UNKNOWN}.
     */
    @Override
    public void close() {
        parts.close();
    }

    /** A builder of an {@link Idempotence}. Its setters return it. Not thread-safe. */
    public static final class Builder {
        private final IdempotenceStorage storage;
        private String namespace = "default";
        private IdempotencePolicy policy = IdempotencePolicy.defaults();
        private int maxWaitingDuplicates = 10_000;
        private @Nullable IdempotenceListener listener;

        private Builder(IdempotenceStorage storage) {
            this.storage = Objects.requireNonNull(storage, "storage");
        }

        /**
         * Sets the service's namespace, so that several services may share one storage. Services with equal namespaces share their IDs
         * without a warning: a request of one may be refused as a duplicate of another's, or get its response.
         *
         * @param namespace 1 to 64 characters: a letter or digit, then letters, digits, dot, underscore, hyphen; default {@code default}
         * @throws IllegalArgumentException if it is not of that form
         */
        public Builder namespace(String namespace) {
            this.namespace = StorageKey.checkedNamespace(namespace);
            return this;
        }

        /**
         * Sets the policy.
         *
         * @param policy the policy of calls that do not have their own
         */
        public Builder policy(IdempotencePolicy policy) {
            this.policy = Objects.requireNonNull(policy, "policy");
            return this;
        }

        /**
         * Sets the listener.
         *
         * @param listener gets every event
         */
        public Builder listener(IdempotenceListener listener) {
            this.listener = Objects.requireNonNull(listener, "listener");
            return this;
        }

        /**
         * Sets how many duplicates may wait at once for a first attempt to end. One more is refused at once.
         *
         * @param duplicates 0 to 1,000,000; default 10,000
         * @throws IllegalArgumentException if out of range
         */
        public Builder maxWaitingDuplicates(int duplicates) {
            if (duplicates < 0 || duplicates > 1_000_000) {
                throw new IllegalArgumentException("maxWaitingDuplicates must be 0 to 1000000, got " + duplicates);
            }
            this.maxWaitingDuplicates = duplicates;
            return this;
        }

        /**
         * Builds the instance.
         *
         * @return a new instance; close it
         */
        public Idempotence build() {
            return new Idempotence(
                    namespace,
                    policy,
                    EngineParts.over(storage, namespace, new Events(listener), maxWaitingDuplicates));
        }
    }
}
