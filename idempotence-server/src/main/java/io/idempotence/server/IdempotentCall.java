package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.Fingerprint;
import java.util.Objects;

/**
 * One attempt at a logical call, as it is handed to {@link Idempotence#execute} or, by a transport, to {@link Engine#claim}.
 * Immutable.
 *
 * <pre>{@code
 * IdempotentCall call = IdempotentCall.of("charge", message.id())
 *         .withScope(message.tenant())
 *         .withFingerprint(Fingerprint.ofContent(message.body()));
 * }</pre>
 *
 * @param id the logical call
 * @param operation what is to be done; IDs of different operations never meet. Empty if the ID names it
 * @param scope whose ID it is, for example the principal or tenant; IDs of different scopes never meet (promise P5). Empty if
 *     there is but one
 * @param fingerprint what the request asks for; another one under the same ID is refused as key-reused
 * @param attempt which attempt of its caller this is, as the caller counts, from 1. Told to the handler, and decides nothing
 */
public record IdempotentCall(IdempotenceId id, String operation, String scope, Fingerprint fingerprint, int attempt) {
    /**
     * Refuses null.
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
     * A call that has nothing but its ID.
     *
     * @param id names the operation as well, where there are several
     * @return the call, with no operation, no scope and {@link Fingerprint#NONE}, as a first attempt
     */
    public static IdempotentCall of(IdempotenceId id) {
        return of("", id);
    }

    /**
     * A call of an operation.
     *
     * @param operation its name, the same in every release
     * @param id the logical call
     * @return the call, with no scope and {@link Fingerprint#NONE}, as a first attempt
     */
    public static IdempotentCall of(String operation, IdempotenceId id) {
        return new IdempotentCall(id, operation, "", Fingerprint.NONE, 1);
    }

    /**
     * This call in a scope.
     *
     * @param scope whose ID it is
     * @return a new call
     */
    public IdempotentCall withScope(String scope) {
        return new IdempotentCall(id, operation, scope, fingerprint, attempt);
    }

    /**
     * This call with a fingerprint.
     *
     * @param fingerprint of what it asks for
     * @return a new call
     */
    public IdempotentCall withFingerprint(Fingerprint fingerprint) {
        return new IdempotentCall(id, operation, scope, fingerprint, attempt);
    }

    /**
     * This call as a later attempt, say the second delivery of a message.
     *
     * @param attempt its number, from 1
     * @return a new call
     * @throws IllegalArgumentException if {@code attempt} is under 1
     */
    public IdempotentCall withAttempt(int attempt) {
        return new IdempotentCall(id, operation, scope, fingerprint, attempt);
    }
}
