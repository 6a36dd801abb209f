package io.idempotence.it.chaos;

/** The end of a call, as its caller saw it. */
sealed interface Ending {
    /** The operation's own response, which names the effect it had. */
    record Responded(String effect) implements Ending {}

    /** The operation's own refusal, which names the call: no effect. */
    record Rejected(String call) implements Ending {}

    /** It took effect, and its response is no longer available. */
    record ResultUnavailable() implements Ending {}

    /** A definite failure that promises that the operation took no effect. */
    record Failed(String why) implements Ending {}

    /** The caller was told that nobody can tell. */
    record Unknown(String why) implements Ending {}
}
