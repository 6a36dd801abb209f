package io.idempotence;

/** The treatment of an ID whose execution was abandoned: it was claimed, its lease is over, and nothing was recorded. */
public enum OnAbandoned {
    /** Later attempts are refused as outcome-unknown until a person decides (T6). The default. */
    REFUSE,
    /** The next attempt runs (T7). Only for operations that are harmless to run twice. */
    RE_EXECUTE,
    /** The operation's recovery rule finds out whether it took effect (T7, T17). */
    RECOVER
}
