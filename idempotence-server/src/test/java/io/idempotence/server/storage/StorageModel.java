package io.idempotence.server.storage;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** The state table of {@code docs/design.md} for one ID, as plainly as it can be written. What a storage does must be what this says. */
class StorageModel {
    enum State {
        ABSENT,
        P,
        C,
        /** Completed provisionally. */
        D,
        R,
        U
    }

    State state = State.ABSENT;
    long fence;
    long owner;
    int fingerprint;
    boolean leaseOver;
    boolean takenOver;
    byte @Nullable [] result;

    String claim(long by, int of, boolean takeOver) {
        if (state == State.ABSENT) {
            return claimed(by, of, 1, false);
        }
        if (of != fingerprint) {
            return "key-reused";
        }
        return switch (state) {
            case C, D -> "completed " + Arrays.toString(result);
            case U -> "unknown";
            case R -> by == owner ? "in progress" : claimed(by, of, fence + 1, false);
            case P -> {
                if (by == owner) {
                    yield claimed(by, of, fence, takenOver);
                }
                if (!leaseOver) {
                    yield "in progress";
                }
                yield takeOver ? claimed(by, of, fence + 1, true) : "abandoned " + fence;
            }
            case ABSENT -> throw new IllegalStateException();
        };
    }

    private String claimed(long by, int of, long nextFence, boolean byTakeOver) {
        state = State.P;
        owner = by;
        fingerprint = of;
        fence = nextFence;
        leaseOver = false;
        takenOver = byTakeOver;
        result = null;
        return "claimed " + nextFence + (byTakeOver ? " taken over" : "");
    }

    String finish(State to, long by, long withFence, int of, byte @Nullable [] with) {
        if (state == State.ABSENT) {
            if (to == State.R) {
                return "lost";
            }
            fingerprint = of;
            end(to, by, withFence, with);
            return "stored after loss";
        }
        if (by == owner && withFence == fence) {
            if (state == State.P || (state == State.D && to == State.C)) {
                end(to, by, withFence, with);
                return "done";
            }
            if (state == to || (state == State.C && to == State.D)) {
                return "done";
            }
        }
        return fenced(of);
    }

    private void end(State to, long by, long withFence, byte @Nullable [] with) {
        state = to;
        owner = by;
        fence = withFence;
        takenOver = false;
        result = with;
    }

    String renew(long by, long withFence, int of, boolean short_) {
        if (state == State.ABSENT) {
            return "lost";
        }
        if (state == State.P && by == owner && withFence == fence) {
            leaseOver = short_;
            return "done";
        }
        return fenced(of);
    }

    private String fenced(int of) {
        return "fenced " + fence + " " + (of == fingerprint ? Arrays.toString(result) : "null");
    }

    boolean delete() {
        boolean lived = state != State.ABSENT;
        vanish();
        return lived;
    }

    /** Deletes the record if a look now shows what an earlier one did. */
    final boolean deleteUnchanged(String seen) {
        return seen.equals(look()) && delete();
    }

    /** What an operator sees. */
    final String look() {
        return shown() + " of " + shownOwner();
    }

    /** Who made the latest claim, as an operator sees it. */
    long shownOwner() {
        return state == State.ABSENT ? 0 : owner;
    }

    /** Its retention is over. */
    final void vanish() {
        state = State.ABSENT;
        fence = 0;
        result = null;
    }

    /** Whether the business transaction of the claim with this owner and fence may commit. */
    boolean markApplied(long by, long withFence) {
        throw new UnsupportedOperationException("not in transaction: " + by + " " + withFence);
    }

    boolean resolve(long withFence, boolean applied) {
        boolean open = withFence == fence && (state == State.U || (state == State.P && leaseOver));
        if (open) {
            end(applied ? State.C : State.R, applied ? 0 : owner, fence, applied ? ClaimResult.noResult() : null);
        }
        return open;
    }

    String shown() {
        return switch (state) {
            case ABSENT -> "none";
            case P ->
                (leaseOver ? IdempotenceRecord.State.ABANDONED : IdempotenceRecord.State.IN_PROGRESS) + " " + fence;
            case C, D -> IdempotenceRecord.State.COMPLETED + " " + fence;
            case R -> IdempotenceRecord.State.RELEASED + " " + fence;
            case U -> IdempotenceRecord.State.UNKNOWN + " " + fence;
        };
    }
}
