package io.idempotence.server;

/** What becomes of an ID when its handler has ended. */
public enum Verdict {
    /** The answer is recorded and replayed; the ID never runs again. */
    KEEP,
    /** The ID is given back; the next attempt runs. */
    RELEASE,
    /** Nobody knows whether the operation took effect; the ID is refused until a person or a rule decides (promise P6). */
    UNKNOWN
}
