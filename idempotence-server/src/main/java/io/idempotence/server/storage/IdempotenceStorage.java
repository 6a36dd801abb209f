package io.idempotence.server.storage;

import io.idempotence.internal.Millis;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The records of the server half: which requests were claimed, and their results.
 *
 * <p><b>Atomicity.</b> Every method but {@link #completeAll} and {@link #list} is one atomic step on one record, by the storage's own
 * clock. It takes one round trip, or two if the storage has to read before it writes. Of all concurrent {@link #claim} calls for a free
 * ID, exactly one returns {@link ClaimResult.Claimed}.
 *
 * <p><b>Repetition.</b> If its reply was lost, a method may be called again with the same arguments, and returns what it returned the
 * first time. There are four exceptions: {@code StoredAfterLoss} becomes {@code Done}; a {@link #release} after which the ID was
 * claimed again becomes {@code Fenced}, with a greater fence; a {@link #delete} finds nothing left to do, or meets a later claim; and a
 * {@link #deleteUnchanged} or {@link #resolve} finds nothing left to do.
 *
 * <p><b>Failures.</b> Every method throws {@link StorageUnavailableException} if the storage fails, within a bounded time. The write may
 * then have happened or not. Every method throws {@link CorruptRecordException} if the record cannot be read. Then nothing was written.
 *
 * <p>Implementations are thread-safe, hold no lock that is shared between records across a round trip, and pass the {@code
 * IdempotenceStorageContract} of this module's test-jar.
 */
public interface IdempotenceStorage extends AutoCloseable {
    /**
     * A storage in this process's memory, for at most 100,000 records in a quarter of the heap, with a monotonic clock. See {@link
     * #inMemory(int, long, Clock)} for its limits.
     */
    static IdempotenceStorage inMemory() {
        return inMemory(
                InMemoryIdempotenceStorage.DEFAULT_MAX_RECORDS, new InMemoryIdempotenceStorage.MonotonicClock());
    }

    /**
     * A storage in at most a quarter of this process's heap. See {@link #inMemory(int, long, Clock)} for its limits.
     *
     * @param maxRecords how many records may exist at once; at least 1
     * @param clock the clock of leases and retention; should never go back
     * @throws IllegalArgumentException if {@code maxRecords} is under 1
     */
    static IdempotenceStorage inMemory(int maxRecords, Clock clock) {
        return inMemory(maxRecords, InMemoryIdempotenceStorage.defaultMaxBytes(), clock);
    }

    /**
     * A storage in this process's memory. Other processes do not see its records, and a restart forgets them all, so that their IDs run
     * again. It is for tests, for examples, and for services of a single instance that accept this.
     *
     * <p>A live record is never evicted, because its ID would run again. If {@code maxRecords} exist, or they take seven eighths of {@code
     * maxBytes}, a claim of a new ID throws {@link StorageUnavailableException} (promise P6). Claims of known IDs still succeed. The last
     * eighth is for the results of running executions. A result that does not fit is not stored: its ID is completed with {@link
     * ClaimResult#noResult()}. Closing does nothing.
     *
     * @param maxRecords how many records may exist at once; at least 1
     * @param maxBytes the estimated memory that they may take; at least 4,096
     * @param clock the clock of leases and retention; should never go back
     * @throws IllegalArgumentException if {@code maxRecords} is under 1 or {@code maxBytes} under 4,096
     */
    static IdempotenceStorage inMemory(int maxRecords, long maxBytes, Clock clock) {
        return new InMemoryIdempotenceStorage(maxRecords, maxBytes, clock);
    }

    /**
     * Claims an ID, or reports its record (T1 to T8, T18). Another fingerprint is reported before any state. An owner whose claim was
     * released does not get it back: its request, repeated and very late, changes nothing and is reported as in progress with no time left.
     *
     * @param request the ID, the owner, and for how long
     * @return whether the ID was claimed, or why not
     */
    ClaimResult claim(ClaimRequest request);

    /**
     * Records the result of a claim (T10, T11, T14, T15), or replaces the one that {@link #completeProvisionally} recorded under it
     * (T24). That also works after the lease, as long as nobody took the claim over. Otherwise a completed record never changes. {@code
     * Fenced} has the canonical result only if it belongs to the claim's own fingerprint (P5).
     *
     * @param result what later attempts get; opaque to the storage. The caller must not change it afterwards
     * @param retention how long the record is kept from now on; at least 1 ms
     * @return {@code Done}, {@code StoredAfterLoss} or {@code Fenced}
     * @throws IllegalArgumentException if {@code retention} is under 1 ms
     */
    WriteResult complete(Claim claim, byte[] result, Duration retention);

    /**
     * Records several results, each in one atomic step like {@link #complete}, independent of the others. By default it records them one
     * after the other. A storage may override this to send them in one round trip.
     *
     * @param completions the results to record, of different claims
     * @return for each of them, in the same order, what {@link #complete} would have returned, or the exception that it would have thrown
     * @throws StorageUnavailableException if the storage failed before every outcome was certain; any of the results may be recorded
     */
    default List<Supplier<WriteResult>> completeAll(List<CompletionRequest> completions) {
        List<Supplier<WriteResult>> outcomes = new ArrayList<>(completions.size());
        for (CompletionRequest each : completions) {
            try {
                WriteResult written = complete(each.claim(), each.result(), each.retention());
                outcomes.add(() -> written);
            } catch (RuntimeException e) {
                outcomes.add(() -> {
                    throw e;
                });
            }
        }
        return outcomes;
    }

    /**
     * How many completions {@link #completeAll} sends together. If it is more than 1, completions that follow their responses are given
     * to it in lists of at most this size. Otherwise each is written alone, several at the same time.
     *
     * @return at least 1; 1 unless overridden
     */
    default int completionsPerRoundTrip() {
        return 1;
    }

    /**
     * Records a result that its owner may replace once, by {@link #complete} under the same claim (T23). Until then the record is
     * completed like any other: attempts get this result, and nothing runs. If the owner has already completed the record, provisionally or
     * not, this changes nothing and returns {@code Done}.
     *
     * @param result what later attempts get unless it is replaced; opaque to the storage. The caller must not change it afterwards
     * @param retention how long the record is kept from now on; at least 1 ms
     * @return {@code Done}, {@code StoredAfterLoss} or {@code Fenced}
     * @throws IllegalArgumentException if {@code retention} is under 1 ms
     */
    WriteResult completeProvisionally(Claim claim, byte[] result, Duration retention);

    /**
     * Releases a claim, so that the next attempt may run (T12, T14, T16). Fingerprint and fence are kept.
     *
     * @param retention how long the record is kept from now on; at least 1 ms
     * @return {@code Done}, {@code Lost} or {@code Fenced}
     * @throws IllegalArgumentException if {@code retention} is under 1 ms
     */
    WriteResult release(Claim claim, Duration retention);

    /**
     * Marks the outcome as unknown (T13, T14). A record that has vanished is stored anew, so that nothing runs again.
     *
     * @param retention how long the record is kept from now on; at least 1 ms
     * @return {@code Done}, {@code StoredAfterLoss} or {@code Fenced}
     * @throws IllegalArgumentException if {@code retention} is under 1 ms
     */
    WriteResult markUnknown(Claim claim, Duration retention);

    /**
     * Renews the lease of a claim: it runs from now on (T9, T14, T16). The record is kept at least as long as the lease.
     *
     * @param lease how long the claim holds from now on; at least 1 ms
     * @return {@code Done}, {@code Lost} or {@code Fenced}
     * @throws IllegalArgumentException if {@code lease} is under 1 ms
     */
    WriteResult renew(Claim claim, Duration lease);

    /**
     * Reads a record without changing it.
     *
     * @return the record, or empty if there is none
     */
    Optional<IdempotenceRecord> find(StorageKey key);

    /**
     * Lists a namespace's records, in no particular order, without changing them. They are read page by page while the stream is consumed,
     * so that the storage is not blocked however many there are. The stream itself may throw {@link StorageUnavailableException}. A record
     * that exists during the whole listing is listed at least once. One that is created or removed meanwhile may be missing. Corrupt records
     * are left out.
     *
     * @param namespace the service's namespace, as in {@link StorageKey#of}
     * @return a stream that need not be closed
     * @throws IllegalArgumentException if {@code namespace} is not a valid one
     */
    Stream<IdempotenceRecord> list(String namespace);

    /**
     * Resolves an ID that is unknown or abandoned, by compare-and-set (T17).
     *
     * @param fence the record's fence when it was read; another fence means that somebody acted in between
     * @param resolution what the business data shows; {@link Resolution#APPLIED} completes with {@link ClaimResult#noResult()}
     * @param retention how long the record is kept from now on at least; a longer remaining retention is not shortened; at least 1 ms
     * @return true if the record was resolved; false if it is gone, has another fence, or is neither unknown nor abandoned
     * @throws IllegalArgumentException if {@code retention} is under 1 ms
     */
    boolean resolve(StorageKey key, long fence, Resolution resolution, Duration retention);

    /**
     * Forgets an ID, whatever its state, even if its record is corrupt. The next claim is a first one, with fence 1. For probes, and for an
     * application that forgets an ID which it saved itself. Whoever has looked at a record first calls {@link #deleteUnchanged}.
     *
     * @return whether there was a record
     */
    boolean delete(StorageKey key);

    /**
     * Forgets an ID if its record is still as it was read, by compare-and-set. So a record that was released, and is claimed again, is not
     * deleted while its operation runs. The next claim is a first one, with fence 1.
     *
     * @param seen the record as it was read, as {@link IdempotenceRecord#isUnchanged} compares it; null if it could not be read. Then it is
     *     deleted if it still cannot be
     * @return true if the record was deleted; false if it is gone or has changed
     * @throws CorruptRecordException if it could be read, and cannot any more
     */
    boolean deleteUnchanged(StorageKey key, @Nullable IdempotenceRecord seen);

    /**
     * The duration from which a call counts as slow. If four fifths of the latest calls are slow, attempts are refused until the storage is
     * faster, because it would hold the threads of the application. Slow calls that began within 100 ms of each other count as one, because
     * one pause delays them all. Must be longer than the calls of a healthy storage take.
     *
     * @return at least 1 ms; one second unless overridden
     */
    default Duration slowCall() {
        return Duration.ofSeconds(1);
    }

    /** Closes what the storage opened itself, never what the application passed in. Closing twice does nothing. */
    @Override
    void close();

    /**
     * A result to record.
     *
     * @param result what later attempts get; opaque to the storage, and not changed afterwards
     * @param retention how long the record is kept from now on; at least 1 ms
     */
    record CompletionRequest(Claim claim, byte[] result, Duration retention) {
        /**
         * Checks the retention.
         *
         * @throws IllegalArgumentException if {@code retention} is under 1 ms
         */
        public CompletionRequest {
            Millis.checked("retention", retention);
        }
    }

    /**
     * A request of one attempt for the right to run.
     *
     * @param fingerprint the content of the request
     * @param owner the attempt's own token; the same again if the same claim is repeated (T2)
     * @param lease how long the claim holds if its owner disappears; at least 1 ms
     * @param retention how long the record is kept from now on; at least {@code lease}
     * @param takeOver whether an abandoned claim may be taken over (T7); otherwise it is reported (T6)
     * @param toGiveBack whether the claim is made only to be released, and nothing will run under it. Then even a storage with its own
     *     take-over rule takes nothing over
     */
    record ClaimRequest(
            StorageKey key,
            Fingerprint fingerprint,
            Owner owner,
            Duration lease,
            Duration retention,
            boolean takeOver,
            boolean toGiveBack) {
        /**
         * Checks the arguments.
         *
         * @throws IllegalArgumentException if {@code lease} is under 1 ms, {@code retention} is under {@code lease}, or a claim that is to be
         *     released takes over
         */
        public ClaimRequest {
            if (lease.toMillis() < 1) {
                throw new IllegalArgumentException("lease must be at least 1 ms, got " + lease);
            }
            if (retention.compareTo(lease) < 0) {
                throw new IllegalArgumentException(
                        "retention " + retention + " must not be shorter than the lease " + lease);
            }
            if (takeOver && toGiveBack) {
                throw new IllegalArgumentException(
                        "a claim with toGiveBack must not have takeOver; set one of them to false");
            }
        }

        /**
         * A claim under which something will run.
         *
         * @param fingerprint the content of the request
         * @param owner the attempt's own token; the same again if the same claim is repeated (T2)
         * @param lease how long the claim holds if its owner disappears; at least 1 ms
         * @param retention how long the record is kept from now on; at least {@code lease}
         * @param takeOver whether an abandoned claim may be taken over (T7); otherwise it is reported (T6)
         * @throws IllegalArgumentException if {@code lease} is under 1 ms or {@code retention} is under {@code lease}
         */
        public ClaimRequest(
                StorageKey key,
                Fingerprint fingerprint,
                Owner owner,
                Duration lease,
                Duration retention,
                boolean takeOver) {
            this(key, fingerprint, owner, lease, retention, takeOver, false);
        }
    }
}
