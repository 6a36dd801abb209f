package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.Fingerprint;
import java.util.Objects;

/**
 * One attempt at a logical call, the argument of {@link Idempotence#execute} or, for transports, of {@link Engine#claim}. Immutable.
 *
 * <pre>{@code
 * IdempotentCall call = IdempotentCall.of("charge", message.id())
 *         .withScope(message.tenant())
 *         .withFingerprint(Fingerprint.ofContent(message.body()));
 * }</pre>
 *
 * @param operation the operation; equal IDs of different operations are different IDs. Empty if the ID identifies the operation
 * @param scope to whom the ID belongs, for example the principal or tenant; equal IDs in different scopes are different IDs (promise P5).
 *     Empty if there is only one
 * @param fingerprint the content of the request; other content under the same ID is refused as key-reused
 * @param attempt the number of this attempt as its caller counts, from 1. A hint for the handler; it affects nothing
 */
public record IdempotentCall(IdempotenceId id, String operation, String scope, Fingerprint fingerprint, int attempt) {
    /**
     * Checks the arguments.
     *
     * @throws IllegalArgumentException if {@code attempt} is under 1
     */
    public IdempotentCall {
        Objects.requireNonNull(id, "id");
        Objects.requireNonNull(operation, "operation");
        Objects.requireNonNull(scope, "scope");
        Objects.requireNonNull(fingerprint, "fingerprint");
        if (attempt < 1) {
            throw new IllegalArgumentException("attempts are counted from 1, got " + attempt);
        }
    }

    /**
     * A call with an ID only.
     *
     * @param id the ID; it also identifies the operation, if there are several
     * @return the call, with no operation, no scope and {@link Fingerprint#NONE}, as a first attempt
     */
    public static IdempotentCall of(IdempotenceId id) {
        return of("", id);
    }

    /**
     * A call of an operation.
     *
     * @param operation the operation's name, the same in every release
     * @return the call, with no scope and {@link Fingerprint#NONE}, as a first attempt
     */
    public static IdempotentCall of(String operation, IdempotenceId id) {
        return new IdempotentCall(id, operation, "", Fingerprint.NONE, 1);
    }

    /**
     * This call in a scope.
     *
     * @param scope to whom the ID belongs
     */
    public IdempotentCall withScope(String scope) {
        return new IdempotentCall(id, operation, scope, fingerprint, attempt);
    }

    /**
     * This call with a fingerprint.
     *
     * @param fingerprint the content of the request
     */
    public IdempotentCall withFingerprint(Fingerprint fingerprint) {
        return new IdempotentCall(id, operation, scope, fingerprint, attempt);
    }

    /**
     * This call as a later attempt, for example the second delivery of a message.
     *
     * @param attempt its number, from 1
     * @throws IllegalArgumentException if {@code attempt} is under 1
     */
    public IdempotentCall withAttempt(int attempt) {
        return new IdempotentCall(id, operation, scope, fingerprint, attempt);
    }
}
