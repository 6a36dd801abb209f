package io.idempotence.http;

import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/**
 * A response of this library itself, in place of the operation's own.
 *
 * <p>On the wire it is an {@code application/problem+json} (RFC 9457) with the {@link #code()} in the header {@link
 * IdempotenceHeaders#IDEMPOTENCY_REFUSAL}.
 */
public enum Refusal {
    /** The operation requires an ID and the request has none. Nothing ran. */
    KEY_MISSING("key-missing", 400, false, true, "This operation requires an Idempotency-Key."),

    /** The ID's header does not parse, or there is more than one of it or of a header that gives its scope. Nothing ran. */
    KEY_INVALID("key-invalid", 400, false, true, "The Idempotency-Key or its scope is not valid."),

    /** The ID belongs to another request (promise P5). Nothing ran for this one. */
    KEY_REUSED("key-reused", 422, false, true, "The Idempotency-Key was used for another request."),

    /** The first attempt still runs. Send the same request again with the same ID. */
    IN_PROGRESS("in-progress", 409, true, false, "The first request with this Idempotency-Key still runs."),

    /** The execution was abandoned, or its handler marked it unknown (promise P6). A person or a recovery rule must decide. */
    OUTCOME_UNKNOWN("outcome-unknown", 409, false, false, "It is not known whether this request was executed."),

    /** The operation was executed, but its response could not be stored. */
    RESULT_UNAVAILABLE("result-unavailable", 409, false, false, "Executed, but the response was not kept."),

    /**
     * The storage failed, or the record cannot be read. Nothing ran for this attempt (promise P6). Another one under the same ID may have
     * run, so do not send a new ID.
     */
    STORAGE_UNAVAILABLE("storage-unavailable", 503, true, false, "The idempotence storage is unavailable."),

    /** The memory that the service may use for requests is full. Nothing ran for this attempt. */
    OVERLOADED("overloaded", 503, true, false, "The service has no memory left for this request.");

    private static final Map<String, Refusal> BY_CODE = byCode();

    private final String code;
    private final int status;
    private final boolean retryable;
    private final boolean safeNewId;
    private final String title;

    Refusal(String code, int status, boolean retryable, boolean safeNewId, String title) {
        this.code = code;
        this.status = status;
        this.retryable = retryable;
        this.safeNewId = safeNewId;
        this.title = title;
    }

    /**
     * Finds the refusal with a code.
     *
     * @param code the value of {@link IdempotenceHeaders#IDEMPOTENCY_REFUSAL}
     * @return the refusal, or empty if this version has none with that code
     */
    public static Optional<Refusal> ofCode(String code) {
        return Optional.ofNullable(BY_CODE.get(code.trim()));
    }

    /** {@return the code on the wire, for example {@code in-progress}} */
    public String code() {
        return code;
    }

    /** {@return the HTTP status of the refusal: 400, 409, 422 or 503} */
    public int status() {
        return status;
    }

    /**
     * {@return whether the same request with the same ID may later get another response; true for {@link #IN_PROGRESS}, {@link
     * #STORAGE_UNAVAILABLE} and {@link #OVERLOADED}}
     */
    public boolean retryable() {
        return retryable;
    }

    /** {@return whether the same request may be sent with a new ID, because it was certainly not executed under this one} */
    public boolean safeNewId() {
        return safeNewId;
    }

    /** {@return a sentence that describes the refusal for a person, the {@code title} of the problem} */
    public String title() {
        return title;
    }

    private static Map<String, Refusal> byCode() {
        Map<String, Refusal> map = new HashMap<>();
        for (Refusal refusal : values()) {
            map.put(refusal.code, refusal);
        }
        return Map.copyOf(map);
    }
}
