package io.idempotence.server;

/** The decision about an ID when its handler ends. */
public enum Verdict {
    /** The response is recorded and replayed. The ID never runs again. */
    KEEP,
    /** The ID is released. The next attempt runs. */
    RELEASE,
    /** The outcome is unknown. The ID is refused until a person or a rule decides (promise P6). */
    UNKNOWN
}
