package io.idempotence.http;

/** The names of the HTTP fields that the two halves exchange. Field names are case-insensitive (RFC 9110, section 5.1). */
public final class IdempotenceHeaders {
    /** Request: the ID (draft-ietf-httpapi-idempotency-key-header-07). Read it with {@link IdempotencyKeyHeader}. */
    public static final String IDEMPOTENCY_KEY = "Idempotency-Key";

    /** Request: the number of this attempt, from 1. A hint for logs; not part of the fingerprint. */
    public static final String IDEMPOTENCY_ATTEMPT = "Idempotency-Attempt";

    /**
     * Request: {@code wait=5} lets the server hold the request for up to 5 seconds while the first attempt runs (RFC 7240, section 4.3).
     */
    public static final String PREFER = "Prefer";

    /** Response: {@code true} on a stored response, absent on a first one. */
    public static final String IDEMPOTENT_REPLAYED = "Idempotent-Replayed";

    /** Response: the {@link Refusal#code()} of a refusal by this library, absent otherwise. */
    public static final String IDEMPOTENCY_REFUSAL = "Idempotency-Refusal";

    /** Response: whole seconds to wait before the next attempt (RFC 9110, section 10.2.3). */
    public static final String RETRY_AFTER = "Retry-After";

    /** Response: milliseconds to wait before the next attempt; overrides {@link #RETRY_AFTER}. */
    public static final String RETRY_AFTER_MS = "Retry-After-Ms";

    private IdempotenceHeaders() {}
}
