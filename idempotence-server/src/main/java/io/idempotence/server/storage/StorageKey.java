package io.idempotence.server.storage;

import io.idempotence.IdempotenceId;
import io.idempotence.internal.FieldDigest;
import io.idempotence.internal.Names;
import java.util.Base64;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The key of an ID's record: {@code idem:<namespace>:<digest>}.
 *
 * <p>The digest is the base64url SHA-256 over namespace, scope, operation and ID, each with its length in front. Because of the hash, no
 * key contains a raw ID, and no caller can choose a Redis Cluster slot with braces in its ID. A key is computed once per request.
 *
 * @param value the whole key
 */
public record StorageKey(String value) {
    private static final String PREFIX = "idem:";
    private static final Pattern FORM = Pattern.compile(PREFIX + "([A-Za-z0-9][A-Za-z0-9._-]{0,63}):[A-Za-z0-9_-]{43}");
    private static final Base64.Encoder BASE64 = Base64.getUrlEncoder().withoutPadding();

    /**
     * The key of an ID.
     *
     * @param namespace the service, as in {@link #checkedNamespace}
     * @param scope to whom the ID belongs (tenant, principal); empty if there is only one
     * @param operation the operation, if equal IDs of different operations are different IDs; otherwise empty
     * @throws IllegalArgumentException if {@code namespace} is not of its form
     */
    public static StorageKey of(String namespace, String scope, String operation, IdempotenceId id) {
        byte[] digest = new FieldDigest()
                .add(namespace)
                .add(scope)
                .add(operation)
                .add(id.value())
                .digest();
        return new StorageKey(PREFIX + checkedNamespace(namespace) + ":" + BASE64.encodeToString(digest));
    }

    /**
     * Parses a key as a list of records shows it.
     *
     * @throws IllegalArgumentException if {@code key} is not the whole key of a record
     */
    public static StorageKey parse(String key) {
        return new StorageKey(matched(key).group());
    }

    /**
     * The namespace of the service that the key belongs to.
     *
     * @throws IllegalArgumentException if this is not the whole key of a record
     */
    public String namespace() {
        return matched(value).group(1);
    }

    private static Matcher matched(String key) {
        Matcher form = FORM.matcher(key);
        if (!form.matches()) {
            throw new IllegalArgumentException(
                    "the key of a record has the form idem:<namespace>:<43 characters>, as list shows it");
        }
        return form;
    }

    /**
     * The prefix of all keys of a service, and of no other service's keys.
     *
     * @param namespace the service, as in {@link #checkedNamespace}
     * @return {@code idem:}, the namespace, and a colon
     * @throws IllegalArgumentException if {@code namespace} is not of its form
     */
    public static String prefix(String namespace) {
        return PREFIX + checkedNamespace(namespace) + ":";
    }

    /**
     * Checks the name of a service.
     *
     * @param namespace 1 to 64 characters: a letter or digit, then letters, digits, dot, underscore, hyphen
     * @return {@code namespace}
     * @throws IllegalArgumentException if it is not of that form
     */
    public static String checkedNamespace(String namespace) {
        return Names.checked("namespace", namespace);
    }

    @Override
    public String toString() {
        return value;
    }
}
