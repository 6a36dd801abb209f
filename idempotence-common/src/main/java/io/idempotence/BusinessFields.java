package io.idempotence;

import io.idempotence.internal.FieldDigest;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * The named fields that identify an operation, and the ID that follows from them.
 *
 * <p>The ID is the operation's name, a hyphen, and the base64url SHA-256 over the operation and every field in the order of their names,
 * each with its length in front. So {@code ("ab", "c")} and {@code ("a", "bc")} differ, and the order of the calls to {@link #with} does
 * not matter. A value cannot be computed from the ID. But a value with few possibilities, such as a phone number, can be found by trying
 * them all: protect such an ID like the value.
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
     * Adds a field.
     *
     * @param name the field's name, not empty
     * @param value the field's value in one canonical spelling; may be empty
     * @return new fields; this object is unchanged
     * @throws IllegalArgumentException if {@code name} is empty or was added before, or if either contains half a surrogate pair, which
     *     UTF-8 would turn into a question mark
     */
    public BusinessFields with(String name, String value) {
        if (name.isEmpty()) {
            throw new IllegalArgumentException("a business field has an empty name; give it a name");
        }
        checkPairs(name, name);
        checkPairs(name, value);
        SortedMap<String, String> more = new TreeMap<>(fields);
        if (more.putIfAbsent(name, value) != null) {
            throw new IllegalArgumentException("business field '" + name + "' is given twice; give each field once");
        }
        return new BusinessFields(operation, more);
    }

    private static void checkPairs(String field, String text) {
        if (!StandardCharsets.UTF_8.newEncoder().canEncode(text)) {
            throw new IllegalArgumentException("business field '" + field
                    + "' contains half a surrogate pair and is not valid text; check where the value comes from");
        }
    }

    /**
     * The ID of these fields. Equal fields give an equal ID.
     *
     * @return the ID
     * @throws IllegalStateException if there is no field: every call of the operation would share one ID
     */
    @Override
    public IdempotenceId generateId() {
        if (fields.isEmpty()) {
            throw new IllegalStateException("operation '" + operation
                    + "' has no fields, so all its calls would share one ID; add fields with with()");
        }
        FieldDigest digest = new FieldDigest().add(operation);
        fields.forEach((name, value) -> digest.add(name).add(value));
        return new IdempotenceId(
                operation + "-" + Base64.getUrlEncoder().withoutPadding().encodeToString(digest.digest()));
    }
}
