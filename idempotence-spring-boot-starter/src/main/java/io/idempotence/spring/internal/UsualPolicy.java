package io.idempotence.spring.internal;

import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;

/** The policy of operations that set none. */
public final class UsualPolicy {
    private UsualPolicy() {}

    /** Returns the policy of the application's bean. A mock of a test has none. */
    public static IdempotencePolicy of(Idempotence idempotence) {
        IdempotencePolicy policy = idempotence.policy();
        if (policy == null) {
            throw SetUpException.of(
                    "The bean of Idempotence is a mock: its policy() returns null.",
                    "Use the real bean in tests, with idempotence.server.storage=memory.");
        }
        return policy;
    }
}
