package io.idempotence.server.storage;

/** What a person, or a rule of the operation, found out about an execution that broke off (T17). */
public enum Resolution {
    /** It took effect: the ID is completed, without an answer. Later attempts are refused as result-unavailable. */
    APPLIED,
    /** It took no effect: the ID is released. The next attempt runs. */
    NOT_APPLIED
}
