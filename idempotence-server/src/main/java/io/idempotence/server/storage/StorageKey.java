package io.idempotence.server.storage;

import io.idempotence.IdempotenceId;
import io.idempotence.internal.FieldDigest;
import java.util.Base64;
import java.util.regex.Pattern;

/**
 * Where the record of one ID lives: {@code idem:<namespace>:<digest>}.
 *
 * <p>The digest is the base64url SHA-256 over namespace, scope, operation and ID, each with its length in front. It is hashed
 * so that no raw ID is in a key name, and so that no caller can choose a Redis Cluster slot with braces in its ID. Computed once per
 * request and carried; nothing looks the key up again.
 *
 * @param value the whole key
 */
public record StorageKey(String value) {
    private static final Pattern NAMESPACE = Pattern.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,63}");

    /**
     * The key of an ID.
     *
     * @param namespace the service, as in {@link #checkedNamespace}
     * @param scope whose ID it is (tenant, principal); empty when there is but one
     * @param operation the operation when IDs are told apart by it; empty when they are not
     * @param id the ID
     * @return the key
     * @throws IllegalArgumentException if {@code namespace} is not of its form
     */
    public static StorageKey of(String namespace, String scope, String operation, IdempotenceId id) {
        byte[] digest = new FieldDigest()
                .add(checkedNamespace(namespace))
                .add(scope)
                .add(operation)
                .add(id.value())
                .digest();
        return new StorageKey(
                prefix(namespace) + Base64.getUrlEncoder().withoutPadding().encodeToString(digest));
    }

    /**
     * What every key of a service begins with, and no key of another service.
     *
     * @param namespace the service, as in {@link #checkedNamespace}
     * @return {@code idem:}, the namespace, and a colon
     * @throws IllegalArgumentException if {@code namespace} is not of its form
     */
    public static String prefix(String namespace) {
        return "idem:" + checkedNamespace(namespace) + ":";
    }

    /**
     * Checks the name of a service.
     *
     * @param namespace 1 to 64 characters: a letter or digit, then letters, digits, dot, underscore, hyphen
     * @return {@code namespace}
     * @throws IllegalArgumentException if it is not of that form
     */
    public static String checkedNamespace(String namespace) {
        if (!NAMESPACE.matcher(namespace).matches()) {
            throw new IllegalArgumentException(
                    "namespace must be 1 to 64 characters, a letter or digit first, then letters,"
                            + " digits, '.', '_' or '-'; name the service, for example 'payments'");
        }
        return namespace;
    }

    @Override
    public String toString() {
        return value;
    }
}
