package io.idempotence;

/** What happens to an ID whose execution was abandoned: claimed, the lease is over, nothing was recorded. */
public enum OnAbandoned {
    /** Later attempts are refused as outcome-unknown until a person decides (T6). The default. */
    REFUSE,
    /** The next attempt runs (T7). Only for operations that are harmless to run twice. */
    RE_EXECUTE,
    /** The operation's recovery rule finds out whether it took effect (T7, T17). */
    RECOVER
}
