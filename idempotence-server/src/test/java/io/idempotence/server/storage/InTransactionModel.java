package io.idempotence.server.storage;

import java.util.Arrays;

/**
 * The state table where executions are marked applied in their business transactions: an interrupted execution has done nothing and is
 * taken over, and what was applied is completed, whatever its record shows, unless the result is there or still to come.
 */
final class InTransactionModel extends StorageModel {
    private long markedFence;
    private int markedFingerprint;

    @Override
    boolean markApplied(long by, long withFence) {
        boolean held = state == State.P && owner == by && fence == withFence && !marked();
        if (held) {
            markedFence = fence;
            markedFingerprint = fingerprint;
        }
        return held;
    }

    @Override
    String claim(long by, int of, boolean takeOver) {
        if (!settled()) {
            return super.claim(by, of, true);
        }
        return of == (state == State.ABSENT ? markedFingerprint : fingerprint)
                ? "completed " + Arrays.toString(ClaimResult.noResult())
                : "key-reused";
    }

    @Override
    boolean resolve(long withFence, boolean applied) {
        return !settled() && super.resolve(withFence, applied);
    }

    @Override
    boolean delete() {
        boolean marked = marked();
        boolean lived = super.delete() || marked;
        markedFence = 0;
        return lived;
    }

    @Override
    String shown() {
        return settled()
                ? IdempotenceRecord.State.COMPLETED + " " + (state == State.ABSENT ? markedFence : fence)
                : super.shown();
    }

    @Override
    long shownOwner() {
        return settled() ? 0 : super.shownOwner();
    }

    private boolean marked() {
        return markedFence != 0;
    }

    private boolean settled() {
        return marked() && state != State.C && state != State.D && (state != State.P || leaseOver);
    }
}
