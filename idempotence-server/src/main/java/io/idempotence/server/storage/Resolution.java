package io.idempotence.server.storage;

/** The finding of a person, or of the operation's recovery rule, about an abandoned or unknown execution (T17). */
public enum Resolution {
    /** It took effect: the ID is completed without a response. Later attempts are refused as result-unavailable. */
    APPLIED,
    /** It took no effect: the ID is released. The next attempt runs. */
    NOT_APPLIED
}
