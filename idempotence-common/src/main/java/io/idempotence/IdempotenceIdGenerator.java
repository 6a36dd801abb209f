package io.idempotence;

import io.idempotence.internal.FieldDigest;
import io.idempotence.internal.Names;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.util.Base64;
import java.util.Objects;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.UUID;

/**
 * A source of IDs for new logical calls.
 *
 * <p>Generators are thread-safe and never return the same ID twice. The exception is {@link #fromFields}, whose IDs follow from their
 * fields.
 */
@FunctionalInterface
public interface IdempotenceIdGenerator {
    /**
     * Makes an ID for a new logical call.
     *
     * @throws IllegalStateException if no ID can be made that is certain to be new, such as after a clock stepped back too far
     */
    IdempotenceId generateId();

    /** Random UUIDs (RFC 9562 version 4, 122 random bits). The default of the client half. */
    static IdempotenceIdGenerator uuid() {
        return () -> new IdempotenceId(UUID.randomUUID().toString());
    }

    /**
     * {@link #uuid() UUIDs} with the application's name in front, such as {@code orders-1c2a…}. A log line or a record then shows where a
     * call came from.
     *
     * @param application 1 to 64 characters: a letter or digit, then letters, digits, dot, underscore, hyphen
     * @throws IllegalArgumentException if {@code application} is not of that form
     */
    static IdempotenceIdGenerator applicationPrefixed(String application) {
        return applicationPrefixed(application, uuid());
    }

    /**
     * The IDs of another generator with the application's name and a hyphen in front.
     *
     * @param application 1 to 64 characters: a letter or digit, then letters, digits, dot, underscore, hyphen
     * @param generator makes what follows the hyphen. If an ID is then longer than 255 characters, {@link #generateId} throws an {@link
     *     IllegalArgumentException}
     * @throws IllegalArgumentException if {@code application} is not of that form
     */
    static IdempotenceIdGenerator applicationPrefixed(String application, IdempotenceIdGenerator generator) {
        Objects.requireNonNull(generator, "generator");
        String prefix = Names.checked("application", application) + "-";
        return () -> new IdempotenceId(prefix + generator.generateId().value());
    }

    /**
     * Snowflake IDs by the system clock: 41 bits of milliseconds since 2020-01-01, 10 bits of node, 12 bits of sequence, written as a
     * decimal number. They sort by time and are easy to guess. Use them only where the server half puts the principal into the scope.
     *
     * @param node this process's number, 0 to 1023; two live processes must not share one. Within a process all callers with one node share
     *     one sequence
     * @throws IllegalArgumentException if {@code node} is out of range
     */
    static IdempotenceIdGenerator snowflake(int node) {
        return SnowflakeIdGenerator.ofSystemClock(node);
    }

    /**
     * Snowflake IDs by a given clock. The generator waits if the clock steps back by up to one second, and fails if it steps back by more.
     * It never repeats an ID.
     *
     * @param node this process's number, 0 to 1023; no other live generator may have it, in this process or another
     * @param clock the source of the milliseconds
     * @throws IllegalArgumentException if {@code node} is out of range
     */
    static IdempotenceIdGenerator snowflake(int node, Clock clock) {
        return new SnowflakeIdGenerator(node, Objects.requireNonNull(clock, "clock"));
    }

    /**
     * IDs for an operation with a business meaning of its own, such as registering a phone number: equal fields give an equal ID, in every
     * process and at any time. Add the fields with {@link BusinessFields#with}.
     *
     * @param operation the operation's name, 1 to 64 characters: a letter or digit, then letters, digits, dot, underscore, hyphen
     * @return no fields yet
     * @throws IllegalArgumentException if {@code operation} is not of that form
     */
    static BusinessFields fromFields(String operation) {
        return BusinessFields.of(operation);
    }

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
    final class BusinessFields implements IdempotenceIdGenerator {
        private final String operation;
        private final SortedMap<String, String> fields;

        private BusinessFields(String operation, SortedMap<String, String> fields) {
            this.operation = operation;
            this.fields = fields;
        }

        static BusinessFields of(String operation) {
            return new BusinessFields(Names.checked("operation", operation), new TreeMap<>());
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
                throw new IllegalArgumentException(
                        "business field '" + name + "' is given twice; give each field once");
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
}
