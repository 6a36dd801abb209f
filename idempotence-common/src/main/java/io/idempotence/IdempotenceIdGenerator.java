package io.idempotence;

import java.time.Clock;
import java.util.Objects;
import java.util.UUID;

/**
 * Makes the ID of a new logical call.
 *
 * <p>Generators are thread-safe and never return the same ID twice, with one exception that is meant:
 * {@link #fromFields}, whose ID follows from what the operation is about.
 */
@FunctionalInterface
public interface IdempotenceIdGenerator {
    /**
     * An ID for a new logical call.
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
     * {@link #uuid() UUIDs} with the application's name in front, as in {@code orders-1c2a…}, so that a log line or a record
     * shows where a call came from.
     *
     * @param application 1 to 64 characters: a letter or digit, then letters, digits, dot, underscore, hyphen
     * @return the generator
     * @throws IllegalArgumentException if {@code application} is not of that form
     */
    static IdempotenceIdGenerator applicationPrefixed(String application) {
        return applicationPrefixed(application, uuid());
    }

    /**
     * Another generator's IDs with the application's name and a hyphen in front.
     *
     * @param application as in {@link #applicationPrefixed(String)}
     * @param generator makes the rest
     * @return the generator
     * @throws IllegalArgumentException if {@code application} is not of that form
     */
    static IdempotenceIdGenerator applicationPrefixed(String application, IdempotenceIdGenerator generator) {
        Objects.requireNonNull(generator, "generator");
        String prefix = NamePrefix.checked("application", application) + "-";
        return () -> new IdempotenceId(prefix + generator.generateId().value());
    }

    /**
     * Snowflake IDs by the system clock: 41 bits of milliseconds since 2020-01-01, 10 bits of node, 12 bits of sequence,
     * written as a decimal number. They sort by time and are easy to guess: use them only where the server half puts the
     * principal into the scope.
     *
     * @param node this process's number, 0 to 1023; two live processes must not share one. Within a process all callers with one
     *     node share one sequence
     * @return the generator
     * @throws IllegalArgumentException if {@code node} is out of range
     */
    static IdempotenceIdGenerator snowflake(int node) {
        return SnowflakeIdGenerator.ofSystemClock(node);
    }

    /**
     * Snowflake IDs by a given clock. A clock that steps back by up to one second is waited out, by more is refused; an
     * ID is never repeated while the generator lives.
     *
     * @param node this process's number, 0 to 1023; no other generator that is alive may have it, in this process or another
     * @param clock tells the milliseconds
     * @return the generator
     * @throws IllegalArgumentException if {@code node} is out of range
     */
    static IdempotenceIdGenerator snowflake(int node, Clock clock) {
        return new SnowflakeIdGenerator(node, Objects.requireNonNull(clock, "clock"));
    }

    /**
     * The ID of an operation that has a business meaning of its own, such as registering a phone number: equal fields give
     * an equal ID, in every process, forever. Add the fields with {@link BusinessFields#with}.
     *
     * @param operation what is done; 1 to 64 characters as in {@link #applicationPrefixed(String)}
     * @return no fields yet
     * @throws IllegalArgumentException if {@code operation} is not of that form
     */
    static BusinessFields fromFields(String operation) {
        return BusinessFields.of(operation);
    }
}
