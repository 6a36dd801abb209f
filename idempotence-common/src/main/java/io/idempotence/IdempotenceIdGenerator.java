package io.idempotence;

import java.time.Clock;
import java.util.Objects;
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
     * @return the ID
     * @throws IdGenerationException if no ID can be made that is certain to be new
     */
    IdempotenceId generateId();

    /**
     * Random UUIDs (RFC 9562 version 4, 122 random bits). The default of the client half.
     *
     * @return the generator
     */
    static IdempotenceIdGenerator uuid() {
        return () -> new IdempotenceId(UUID.randomUUID().toString());
    }

    /**
     * {@link #uuid() UUIDs} with the application's name in front, such as {@code orders-1c2a…}. A log line or a record then shows where a
     * call came from.
     *
     * @param application 1 to 64 characters: a letter or digit, then letters, digits, dot, underscore, hyphen
     * @return the generator
     * @throws IllegalArgumentException if {@code application} is not of that form
     */
    static IdempotenceIdGenerator applicationPrefixed(String application) {
        return applicationPrefixed(application, uuid());
    }

    /**
     * The IDs of another generator with the application's name and a hyphen in front.
     *
     * @param application 1 to 64 characters: a letter or digit, then letters, digits, dot, underscore, hyphen
     * @param generator makes what follows the hyphen
     * @return the generator
     * @throws IllegalArgumentException if {@code application} is not of that form
     */
    static IdempotenceIdGenerator applicationPrefixed(String application, IdempotenceIdGenerator generator) {
        Objects.requireNonNull(generator, "generator");
        String prefix = NamePrefix.checked("application", application) + "-";
        return () -> new IdempotenceId(prefix + generator.generateId().value());
    }

    /**
     * Snowflake IDs by the system clock: 41 bits of milliseconds since 2020-01-01, 10 bits of node, 12 bits of sequence, written as a
     * decimal number. They sort by time and are easy to guess. Use them only where the server half puts the principal into the scope.
     *
     * @param node this process's number, 0 to 1023; two live processes must not share one. Within a process all callers with one node share
     *     one sequence
     * @return the generator
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
     * @return the generator
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
}
