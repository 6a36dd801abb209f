package io.idempotence;

/** A rule that decides which failures keep an ID and which release it. A success, any status under 400, is always kept. */
public enum FailureRule {
    /**
     * The default. A business failure (4xx) is kept, because running again would fail again. A system failure (uncaught exception, 5xx,
     * 408, 425, 429) is released, because running again may succeed. A handler that fails after it took effect, and has not declared that
     * effect, takes effect again on the retry. Choose another rule for it.
     */
    RELEASE_ON_SYSTEM_FAILURE,

    /**
     * The strict rule: like {@link #RELEASE_ON_SYSTEM_FAILURE}, but a system failure releases the ID only if the handler declared that
     * nothing took effect. Otherwise the outcome is unknown, and nothing runs again until a person or a recovery rule
     * decides. For handlers that can fail after they took effect.
     */
    RELEASE_IF_NOTHING_TOOK_EFFECT,

    /**
     * Every response is kept, including a 500: no failure of the handler makes the ID run again. A verdict of the policy, the handler's own
     * decision and the rule for abandoned executions still apply.
     */
    STORE_EVERYTHING,

    /** Only a success is kept: a 4xx is released, too. */
    STORE_SUCCESS_ONLY
}
