package io.idempotence.client;

/** What one attempt of a logical call came to. */
public enum AttemptOutcome {
    /** A first response, 2xx, that could be read; or a value that needed no request. */
    SUCCEEDED,

    /** A stored response, a stored failure included (promise P4). */
    REPLAYED,

    /** No connection, or the HTTP client took none of it: the request certainly did not leave, and may be retried even without an ID. */
    NOT_SENT,

    /** Sent, with an unknown outcome: may be retried only with an ID. */
    UNDETERMINED,

    /** A status that may be another one next time. */
    RETRYABLE,

    /** An earlier attempt was still running when time was over. */
    IN_PROGRESS,

    /** Another refusal of the server half. */
    REFUSED,

    /** A response that another attempt does not change, or a failure on this side. */
    FINAL
}
