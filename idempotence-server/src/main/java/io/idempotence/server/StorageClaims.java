package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import io.idempotence.server.storage.StorageUnavailableException.Certainty;
import io.idempotence.server.storage.WriteResult;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The claims of executions and saved IDs. A claim whose reply is lost is repeated once. A claim that may have been stored although nothing
 * runs under it is released in the background.
 */
final class StorageClaims {
    /** After this number of exceptions in a row that a storage must not throw, a claim is left to its lease. */
    static final int MAX_BUGS_IN_A_ROW = 8;

    private static final Duration SHORTEST_LEASE = Duration.ofMillis(1);

    /** The purpose of a claim. */
    private enum Purpose {
        EXECUTE,
        /** To repeat a claim that was granted too late. If the repeated claim writes nothing, the storage still holds the granted one. */
        EXECUTE_AGAIN,
        /** To save an ID. Other consumers treat the ID as done while its claim is live. Its lease is as long as its retention. */
        SAVE
    }

    private final IdempotenceStorage storage;
    private final StorageGuard guard;
    private final Events events;
    private final BackgroundWrites giveBacks;
    /** The number of pending releases of each key. */
    private final Map<StorageKey, Integer> beingGivenBack = new ConcurrentHashMap<>();

    StorageClaims(IdempotenceStorage storage, StorageGuard guard, Events events, BackgroundWrites giveBacks) {
        this.storage = storage;
        this.guard = guard;
        this.events = events;
        this.giveBacks = giveBacks;
    }

    /**
     * Claims an ID for an execution.
     *
     * @throws StorageUnavailableException if no reply came
     * @throws CorruptRecordException if the record cannot be read
     * @throws RuntimeException or an error, whatever else the storage throws. A claim that may have been stored is released
     */
    ClaimResult claimForExecution(IdempotenceId id, ClaimRequest request) {
        return claimRepeatingOnce(id, request, Purpose.EXECUTE);
    }

    /** Repeats a claim that was granted too late. If that fails, the granted one is released. Throws what {@link #claimForExecution} throws. */
    ClaimResult claimAgain(IdempotenceId id, ClaimRequest request) {
        return claimRepeatingOnce(id, request, Purpose.EXECUTE_AGAIN);
    }

    /**
     * Claims an ID to save it. Other consumers treat a saved ID as done and drop their message, so an ID must never be saved only briefly.
     *
     * @return whether it was absent
     * @throws StorageUnavailableException if the storage fails, or the ID may have been saved without a reply and is being released
     * @throws RuntimeException or an error, as in {@link #claimForExecution}
     */
    boolean save(IdempotenceId id, ClaimRequest request) {
        // Checked before and after the claim, because the ID may be released between the claim and its reply.
        boolean wasBeingGivenBack = beingGivenBack.containsKey(request.key());
        ClaimResult result = claimRepeatingOnce(id, request, Purpose.SAVE);
        boolean saved = result instanceof ClaimResult.Claimed;
        if (!saved && (wasBeingGivenBack || beingGivenBack.containsKey(request.key()) || isBeingGivenBack(result))) {
            throw new StorageUnavailableException(
                    "this ID may have been saved when the storage did not respond, and is being released; ask again later",
                    null);
        }
        return saved;
    }

    /** Whether a result comes from a claim by {@link GiveBack}, in this or another process: the claim of a saved ID has a long lease. */
    private static boolean isBeingGivenBack(ClaimResult result) {
        return result instanceof ClaimResult.Abandoned
                || (result instanceof ClaimResult.InProgress claimed
                        && claimed.leaseLeft().compareTo(SHORTEST_LEASE) <= 0);
    }

    /** Claims, and repeats the claim once if its reply was lost. A claim that may have been stored without a reply is released. */
    private ClaimResult claimRepeatingOnce(IdempotenceId id, ClaimRequest request, Purpose purpose) {
        try {
            return guard.call(() -> storage.claim(request));
        } catch (StorageUnavailableException first) {
            if (first.certainty() != Certainty.NONE) {
                boolean earlierClaimStays = purpose == Purpose.EXECUTE_AGAIN && first.nothingWritten();
                if (earlierClaimStays || first.certainty() == Certainty.TO_GIVE_BACK) {
                    scheduleGiveBack(id, request, purpose);
                }
                throw first;
            }
            try {
                // The claim whose reply was lost may have been granted: the same owner gets the same reply (T2, T21).
                return guard.call(() -> storage.claim(request));
            } catch (Throwable second) {
                scheduleGiveBack(id, request, purpose);
                if (second != first) {
                    second.addSuppressed(first);
                }
                throw second;
            }
        } catch (CorruptRecordException e) {
            // The storage has found another claim's record.
            throw e;
        } catch (Throwable e) {
            // A storage may fail after it has stored the claim, for example in its driver's reading of the reply.
            scheduleGiveBack(id, request, purpose);
            throw e;
        }
    }

    /** Releases, in the background, the claim that this request may have stored, because nothing will run under it. */
    void giveBackLater(IdempotenceId id, ClaimRequest request) {
        scheduleGiveBack(id, request, Purpose.EXECUTE);
    }

    private void scheduleGiveBack(IdempotenceId id, ClaimRequest request, Purpose purpose) {
        beingGivenBack.merge(request.key(), 1, Integer::sum);
        giveBacks.retry(
                id,
                0,
                // The release claims as the same owner, so it cannot harm another owner, however late it runs.
                request.retention(),
                new GiveBack(id, request, purpose),
                () -> beingGivenBack.computeIfPresent(request.key(), (key, times) -> times == 1 ? null : times - 1));
    }

    /**
     * The release of a claim without a reply. A claim may have been stored, although no reply came, and nothing will run under it. If it
     * stayed, it would show as abandoned, a false "outcome unknown". So the same owner claims once more (T2) and releases. If nothing had
     * been stored, the released record blocks a claim that is still on its way (T8). This never takes over another owner's claim: that
     * would stop the other owner, and nothing would run instead.
     */
    private final class GiveBack implements Runnable {
        private final IdempotenceId id;
        private final ClaimRequest request;
        private final ClaimRequest again;
        private final Purpose purpose;
        /** Not volatile: one attempt follows another. */
        private int bugsInARow;

        GiveBack(IdempotenceId id, ClaimRequest request, Purpose purpose) {
            this.id = id;
            this.request = request;
            this.again = new ClaimRequest(
                    request.key(),
                    request.fingerprint(),
                    request.owner(),
                    purpose == Purpose.SAVE ? SHORTEST_LEASE : request.lease(),
                    request.retention(),
                    false,
                    true);
            this.purpose = purpose;
        }

        @Override
        public void run() {
            try {
                claimAndGiveBack();
            } catch (StorageUnavailableException | CorruptRecordException | VirtualMachineError e) {
                bugsInARow = 0;
                throw e;
            } catch (Throwable e) {
                bugsInARow++;
                boolean leaseEndsClaim = purpose != Purpose.SAVE;
                if (leaseEndsClaim && bugsInARow >= MAX_BUGS_IN_A_ROW) {
                    events.claimStays(id, request.key(), bugsInARow, e);
                } else {
                    throw e;
                }
            }
        }

        private void claimAndGiveBack() {
            if (storage.claim(again) instanceof ClaimResult.Claimed claimed) {
                releaseOrAbandon(claimed, request);
            }
        }
    }

    /** Releases a claim under which nothing will run, now or in the background. */
    void giveBackNowOrLater(IdempotenceId id, ClaimResult.Claimed claimed, ClaimRequest request) {
        try {
            guard.callUnlimited(() -> releaseOrAbandon(claimed, request));
        } catch (Throwable e) {
            giveBackLater(id, request);
            events.logStorageFailed(id, "a claim could not be given back; it is retried", e);
        }
    }

    /** Releases a claim. After a take-over, the record becomes abandoned again: its next execution must see that there was an earlier one. */
    private WriteResult releaseOrAbandon(ClaimResult.Claimed claimed, ClaimRequest request) {
        if (claimed.takenOver() && request.takeOver()) {
            return Lease.abandon(storage, claimed.claim());
        }
        return storage.release(claimed.claim(), request.retention());
    }

    /** Begins to close. The returned task waits for the end, as that of {@link BackgroundWrites#beginClose}. */
    Runnable beginClose() {
        return giveBacks.beginClose();
    }
}
