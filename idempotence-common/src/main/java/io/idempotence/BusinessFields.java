package io.idempotence;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Base64;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * The named fields that say which operation this is, and the ID that follows from them.
 *
 * <p>The ID is the operation's name, a hyphen, and the base64url SHA-256 over the operation and every field in the order of
 * their names, each with its length in front, so that {@code ("ab", "c")} and {@code ("a", "bc")} differ and the order of
 * the calls to {@link #with} does not matter. Values are not recoverable from the ID, but a value of few possibilities (a
 * phone number) can be found by trying: treat such an ID as you treat the value.
 *
 * <p>Immutable and thread-safe.
 *
 * <pre>{@code
 * IdempotenceId id = IdempotenceIdGenerator.fromFields("register-phone").with("number", number).generateId();
 * }</pre>
 */
public final class BusinessFields implements IdempotenceIdGenerator {
    private final String operation;
    private final SortedMap<String, String> fields;

    private BusinessFields(String operation, SortedMap<String, String> fields) {
        this.operation = operation;
        this.fields = fields;
    }

    static BusinessFields of(String operation) {
        return new BusinessFields(NamePrefix.checked("operation", operation), new TreeMap<>());
    }

    /**
     * These fields and one more.
     *
     * @param name the field's name, not empty
     * @param value the field's value in one canonical spelling; an empty value is a value
     * @return new fields; this object is unchanged
     * @throws IllegalArgumentException if {@code name} is empty or already there
     */
    public BusinessFields with(String name, String value) {
        if (name.isEmpty()) {
            throw new IllegalArgumentException("a business field needs a name");
        }
        SortedMap<String, String> more = new TreeMap<>(fields);
        if (more.putIfAbsent(name, value) != null) {
            throw new IllegalArgumentException("business field '" + name + "' is given twice");
        }
        return new BusinessFields(operation, more);
    }

    /**
     * The ID of these fields: always the same one.
     *
     * @return the ID
     * @throws IllegalStateException if there is no field: every call of the operation would share one ID
     */
    @Override
    public IdempotenceId generateId() {
        if (fields.isEmpty()) {
            throw new IllegalStateException(
                    "add the fields that tell one '" + operation + "' from another with with()");
        }
        MessageDigest digest = sha256();
        update(digest, operation);
        for (Map.Entry<String, String> field : fields.entrySet()) {
            update(digest, field.getKey());
            update(digest, field.getValue());
        }
        return new IdempotenceId(
                operation + "-" + Base64.getUrlEncoder().withoutPadding().encodeToString(digest.digest()));
    }

    private static void update(MessageDigest digest, String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        digest.update(ByteBuffer.allocate(Integer.BYTES).putInt(bytes.length).array());
        digest.update(bytes);
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }
}
