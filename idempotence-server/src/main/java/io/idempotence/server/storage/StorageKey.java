package io.idempotence.server.storage;

import io.idempotence.IdempotenceId;
import io.idempotence.internal.FieldDigest;
import java.util.Base64;

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
    private static final int MAX_NAMESPACE = 64;

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
        String prefix = prefix(namespace);
        byte[] digest = new FieldDigest()
                .add(namespace)
                .add(scope)
                .add(operation)
                .add(id.value())
                .digest();
        return new StorageKey(prefix + Base64.getUrlEncoder().withoutPadding().encodeToString(digest));
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
        if (!isNamespace(namespace)) {
            throw new IllegalArgumentException(
                    "namespace must be 1 to 64 characters, a letter or digit first, then letters,"
                            + " digits, '.', '_' or '-'; name the service, for example 'payments'");
        }
        return namespace;
    }

    /** Asked for every key. */
    private static boolean isNamespace(String name) {
        if (name.isEmpty() || name.length() > MAX_NAMESPACE) {
            return false;
        }
        for (int i = 0; i < name.length(); i++) {
            char c = name.charAt(i);
            boolean alphanumeric = c < 128 && Character.isLetterOrDigit(c);
            if (!alphanumeric && (i == 0 || (c != '.' && c != '_' && c != '-'))) {
                return false;
            }
        }
        return true;
    }

    @Override
    public String toString() {
        return value;
    }
}
