package io.idempotence.client;

/** The outcome of one attempt of a logical call. */
public enum AttemptOutcome {
    /** A first response, 2xx, that was read; or a value that needed no request. */
    SUCCEEDED,

    /** A stored response, including a stored failure (promise P4). */
    REPLAYED,

    /**
     * No connection, or the HTTP client rejected the request: the request certainly was not sent, and may be retried even without an ID.
     */
    NOT_SENT,

    /** Sent, with an unknown outcome: may be retried only with an ID. */
    UNDETERMINED,

    /** A status that may be different in another attempt. */
    RETRYABLE,

    /** An earlier attempt was still running when the time was over. */
    IN_PROGRESS,

    /** Another refusal of the server half. */
    REFUSED,

    /** A response that another attempt does not change, or a failure on this side. */
    FINAL
}
