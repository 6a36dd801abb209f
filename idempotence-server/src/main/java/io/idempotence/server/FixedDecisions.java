package io.idempotence.server;

import io.idempotence.http.Refusal;
import java.time.Duration;

/** The decisions that do not depend on the attempt. */
final class FixedDecisions {
    static final Duration SOONEST_RETRY = Duration.ofMillis(20);
    private static final Duration STORAGE_RETRY = Duration.ofSeconds(1);

    private FixedDecisions() {}

    /** The decision for every attempt at an operation that ended with this result. */
    static Decision.Substitute ended(byte[] result) {
        return StoredResult.kind(result) == StoredResult.UNAVAILABLE
                ? new Decision.Refuse(Refusal.RESULT_UNAVAILABLE, Duration.ZERO)
                : new Decision.Replay(result);
    }

    /** A refusal after which a retry claims again, and so follows the policy. */
    static Decision.Refuse askAgain() {
        return new Decision.Refuse(Refusal.IN_PROGRESS, SOONEST_RETRY);
    }

    static Decision.Refuse outcomeUnknown() {
        return new Decision.Refuse(Refusal.OUTCOME_UNKNOWN, Duration.ZERO);
    }

    static Decision.Refuse keyReused() {
        return new Decision.Refuse(Refusal.KEY_REUSED, Duration.ZERO);
    }

    static Decision.Refuse storageUnavailable() {
        return new Decision.Refuse(Refusal.STORAGE_UNAVAILABLE, STORAGE_RETRY);
    }
}
