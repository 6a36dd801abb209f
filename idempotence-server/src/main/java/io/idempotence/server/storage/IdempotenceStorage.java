package io.idempotence.server.storage;

import java.time.Clock;
import java.time.Duration;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * Remembers which requests were claimed and what they answered.
 *
 * <p>Every method but {@link #list} is one atomic step on one record, by the storage's own clock: one round trip as a rule, and a
 * second one where a storage has to read before it can write. Of all concurrent {@link #claim} calls for a free ID exactly one
 * returns {@link ClaimResult.Claimed}. Each method may be called again with the same arguments when its reply was lost, and answers as
 * it did the first time; only what was {@code StoredAfterLoss} is {@code Done} then, and a {@link #delete} or {@link #resolve} has
 * nothing left to do.
 *
 * <p>Implementations are thread-safe, hold no lock that is shared between records across a round trip, and pass the
 * {@code IdempotenceStorageContract} of this module's test-jar.
 *
 * <p>Every method throws {@link StorageUnavailableException} if the storage cannot say, in a bounded time; the write may or may not
 * have happened. Every method throws {@link CorruptRecordException} if the record cannot be read; then nothing was written.
 */
public interface IdempotenceStorage extends AutoCloseable {
    /**
     * A storage in this process's memory for at most 100,000 records in a quarter of the heap, by a clock that never goes back. See
     * {@link #inMemory(int, long, Clock)} for its limits.
     *
     * @return a new storage
     */
    static IdempotenceStorage inMemory() {
        return inMemory(InMemoryIdempotenceStorage.DEFAULT_MAX_RECORDS, new MonotonicClock());
    }

    /**
     * A storage in this process's memory, in at most a quarter of the heap. See {@link #inMemory(int, long, Clock)} for its limits.
     *
     * @param maxRecords how many records may live at once; at least 1
     * @param clock decides leases and retention; should never go back
     * @return a new storage
     * @throws IllegalArgumentException if {@code maxRecords} is under 1
     */
    static IdempotenceStorage inMemory(int maxRecords, Clock clock) {
        return inMemory(maxRecords, InMemoryIdempotenceStorage.defaultMaxBytes(), clock);
    }

    /**
     * A storage in this process's memory. Another process does not see its records, and a restart forgets them all: an ID that
     * ran before it runs again after it. It is meant for tests, for examples, and for services of a single instance that accept this.
     *
     * <p>A record that still lives is never given up for a new one: its ID would run again. When {@code maxRecords} live, or they take
     * seven eighths of {@code maxBytes}, a claim of a new ID throws {@link StorageUnavailableException} (promise P6); claims of known
     * IDs go on. The last eighth is for the results of what runs already. A result that does not fit is not kept: its ID is completed
     * with {@link ClaimResult#noResult()}. Closing does nothing.
     *
     * @param maxRecords how many records may live at once; at least 1
     * @param maxBytes how much memory they may take, by estimate; at least 4,096
     * @param clock decides leases and retention; should never go back
     * @return a new storage
     * @throws IllegalArgumentException if {@code maxRecords} is under 1 or {@code maxBytes} under 4,096
     */
    static IdempotenceStorage inMemory(int maxRecords, long maxBytes, Clock clock) {
        return new InMemoryIdempotenceStorage(maxRecords, maxBytes, clock);
    }

    /**
     * Claims an ID, or reports who got there first (T1 to T8, T18). Another fingerprint is reported before any state.
     * An owner whose claim was released does not get it back: a request that was sent again and came very late changes nothing, and is
     * answered as in progress with no time left.
     *
     * @param request who asks, for what, for how long
     * @return the outcome
     * @throws StorageUnavailableException see above; sending the same request again is safe
     * @throws CorruptRecordException see above
     */
    ClaimResult claim(ClaimRequest request);

    /**
     * Records the result of a claim (T10, T11, T14, T15), or replaces the one that {@link #completeProvisionally} recorded under it
     * (T24). A lease that is over is no obstacle as long as nobody took the claim over. Otherwise a completed record never changes. {@code Fenced} carries the canonical result only if it belongs to the claim's own fingerprint (P5).
     *
     * @param claim the right to run
     * @param result what later attempts get; opaque to the storage, not changed afterwards by the caller
     * @param retention how long the record lives from now on; at least 1 ms
     * @return {@code Done}, {@code StoredAfterLoss} or {@code Fenced}
     * @throws IllegalArgumentException if {@code retention} is under 1 ms
     * @throws StorageUnavailableException see above
     * @throws CorruptRecordException see above
     */
    WriteResult complete(Claim claim, byte[] result, Duration retention);

    /**
     * Records a result that its owner may replace once, by {@link #complete} under the same claim (T23). Until then the record is
     * completed like any other: attempts get this result, and nothing runs. On a record that its owner has completed already,
     * provisionally or not, it changes nothing and answers {@code Done}.
     *
     * @param claim the right to run
     * @param result what later attempts get unless it is replaced; opaque to the storage, not changed afterwards by the caller
     * @param retention how long the record lives from now on; at least 1 ms
     * @return {@code Done}, {@code StoredAfterLoss} or {@code Fenced}
     * @throws IllegalArgumentException if {@code retention} is under 1 ms
     * @throws StorageUnavailableException see above
     * @throws CorruptRecordException see above
     */
    WriteResult completeProvisionally(Claim claim, byte[] result, Duration retention);

    /**
     * Gives a claim back so that the next attempt may run (T12, T14, T16). Fingerprint and fence survive.
     *
     * @param claim the right to run
     * @param retention how long the record lives from now on; at least 1 ms
     * @return {@code Done}, {@code Lost} or {@code Fenced}
     * @throws IllegalArgumentException if {@code retention} is under 1 ms
     * @throws StorageUnavailableException see above
     * @throws CorruptRecordException see above
     */
    WriteResult release(Claim claim, Duration retention);

    /**
     * Marks the outcome as unknown (T13, T14). A record that has vanished is stored anew, so that nothing runs again.
     *
     * @param claim the right to run
     * @param retention how long the record lives from now on; at least 1 ms
     * @return {@code Done}, {@code StoredAfterLoss} or {@code Fenced}
     * @throws IllegalArgumentException if {@code retention} is under 1 ms
     * @throws StorageUnavailableException see above
     * @throws CorruptRecordException see above
     */
    WriteResult markUnknown(Claim claim, Duration retention);

    /**
     * Lets the lease of a claim run from now on (T9, T14, T16). The record then lives at least as long as the lease.
     *
     * @param claim the right to run
     * @param lease how long the claim holds from now on; at least 1 ms
     * @return {@code Done}, {@code Lost} or {@code Fenced}
     * @throws IllegalArgumentException if {@code lease} is under 1 ms
     * @throws StorageUnavailableException see above
     * @throws CorruptRecordException see above
     */
    WriteResult renew(Claim claim, Duration lease);

    /**
     * Looks at a record without changing it.
     *
     * @param key where it lives
     * @return the record, or empty if there is none
     * @throws StorageUnavailableException see above
     * @throws CorruptRecordException see above
     */
    Optional<IdempotenceRecord> find(StorageKey key);

    /**
     * A namespace's records, in no particular order, without changing them. They are read page by page while the stream is
     * consumed, so that no storage is held up however many there are; the stream itself may throw {@link
     * StorageUnavailableException}. A record that is there during the whole walk is listed at least once; one that comes or goes
     * meanwhile may be missing. Corrupt records are left out.
     *
     * @param namespace the service, as in {@link StorageKey#of}
     * @return a stream that need not be closed
     * @throws IllegalArgumentException if {@code namespace} is not of its form
     */
    Stream<IdempotenceRecord> list(String namespace);

    /**
     * Ends the uncertainty about an ID that is unknown or abandoned, by compare-and-set (T17).
     *
     * @param key where the record lives
     * @param fence the record's fence when it was looked at; another one means that somebody acted in between
     * @param resolution what was found out; {@link Resolution#APPLIED} completes with {@link ClaimResult#noResult()}
     * @param retention how long the record lives from now on at least: one that would have lived longer still does; at least 1 ms
     * @return whether it was done; false if the record is gone, has another fence, or is neither unknown nor abandoned
     * @throws IllegalArgumentException if {@code retention} is under 1 ms
     * @throws StorageUnavailableException see above
     * @throws CorruptRecordException see above
     */
    boolean resolve(StorageKey key, long fence, Resolution resolution, Duration retention);

    /**
     * Forgets an ID, whatever its state and even if its record is corrupt. The next claim is a first one, with fence 1.
     *
     * @param key where it lives
     * @return whether there was a record
     * @throws StorageUnavailableException see above
     */
    boolean delete(StorageKey key);

    /**
     * From when on a call is slow. Where four fifths of the latest calls are, attempts are refused until the storage is faster: it would
     * hold the threads of the application. Longer than the storage's calls take while it is well.
     *
     * @return at least 1 ms; one second unless overridden
     */
    default Duration slowCall() {
        return Duration.ofSeconds(1);
    }

    /** Closes what the storage opened itself, never what the application gave it. Closing twice does nothing. */
    @Override
    void close();
}
