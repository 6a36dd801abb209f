package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.ClaimRequest;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageUnavailableException;
import java.util.function.BooleanSupplier;

/**
 * Claims that leave nothing behind: one whose reply is lost is made once more, and one that may have been stored in vain is given back in
 * the background.
 */
final class StorageClaims {
    private final IdempotenceStorage storage;
    private final StorageGuard guard;
    private final BackgroundWrites giveBacks;
    private final CountedKeys beingGivenBack = new CountedKeys();

    StorageClaims(IdempotenceStorage storage, StorageGuard guard, BackgroundWrites giveBacks) {
        this.storage = storage;
        this.guard = guard;
        this.giveBacks = giveBacks;
    }

    /**
     * Claims an ID for an execution.
     *
     * @throws StorageUnavailableException if no reply came; what may have been stored is given back
     */
    ClaimResult claim(IdempotenceId id, ClaimRequest request) {
        return claim(id, request, () -> true);
    }

    /**
     * Claims an ID to save it. Others take an ID that is there for done, and forget their message: it must not be there for a moment only.
     *
     * @return whether it was absent
     * @throws StorageUnavailableException if the storage cannot tell, or the ID was saved in vain and is being given back
     */
    boolean save(IdempotenceId id, ClaimRequest request) {
        BooleanSupplier isThere = () -> storage.find(request.key()).isPresent();
        // Asked on both sides of the claim: it may be given back while the claim is under way.
        boolean inVain = beingGivenBack.contains(request.key());
        boolean saved = claim(id, request, isThere) instanceof ClaimResult.Claimed;
        if (!saved && (inVain || beingGivenBack.contains(request.key()))) {
            throw new StorageUnavailableException(
                    "this ID may have been saved in vain when the storage did not answer, and is being given back; ask again",
                    null);
        }
        return saved;
    }

    private ClaimResult claim(IdempotenceId id, ClaimRequest request, BooleanSupplier mayClaimToGiveBack) {
        try {
            return guard.call(() -> storage.claim(request));
        } catch (StorageUnavailableException first) {
            if (first.certainty() != StorageUnavailableException.Certainty.NONE) {
                if (first.certainty() == StorageUnavailableException.Certainty.TO_GIVE_BACK) {
                    giveBackLater(id, request, mayClaimToGiveBack);
                }
                throw first;
            }
            try {
                // The lost reply may have been a yes: the same owner gets the same answer (T2, T21).
                return guard.call(() -> storage.claim(request));
            } catch (StorageUnavailableException second) {
                second.addSuppressed(first);
                giveBackLater(id, request, mayClaimToGiveBack);
                throw second;
            }
        }
    }

    /** Gives back, in the background, what may have been stored for this request, under which nothing will run. */
    void giveBackLater(IdempotenceId id, ClaimRequest request) {
        giveBackLater(id, request, () -> true);
    }

    /**
     * No reply came, yet a claim may have been stored, and nothing will run under it. Left alone it would show as abandoned, a
     * false "outcome unknown". Asking once more as the same owner tells (T2). If there was none, what is left is a released
     * record, which keeps out a claim that is still under way (T8). It takes nothing over: that would stop an owner, and nothing
     * would run instead.
     */
    private void giveBackLater(IdempotenceId id, ClaimRequest request, BooleanSupplier mayClaim) {
        ClaimRequest again = new ClaimRequest(
                request.key(),
                request.fingerprint(),
                request.owner(),
                request.lease(),
                request.retention(),
                false,
                true);
        Runnable giveBack = () -> {
            if (mayClaim.getAsBoolean() && storage.claim(again) instanceof ClaimResult.Claimed claimed) {
                giveBack(claimed, request);
            }
        };
        beingGivenBack.add(request.key());
        giveBacks.retry(
                id,
                0,
                // It asks as its owner: whoever has the ID by then loses nothing.
                request.retention(),
                giveBack,
                () -> beingGivenBack.remove(request.key()));
    }

    /** Gives back a claim under which nothing will run. */
    void giveBack(ClaimResult.Claimed claimed, ClaimRequest request) {
        if (claimed.takenOver() && request.takeOver()) {
            Lease.abandon(storage, claimed.claim());
        } else {
            storage.release(claimed.claim(), request.retention());
        }
    }

    /** Begins to close; what is returned waits for the end, as {@link BackgroundWrites#beginClose} does. */
    Runnable beginClose() {
        return giveBacks.beginClose();
    }
}
