package io.idempotence.server.servlet;

import io.idempotence.internal.OptionalDependency;

/**
 * What of a request body counts when two requests under one ID are compared. Method, path, query and media type always count; a
 * gzip coding and the boundary of a multipart body never do. Implementations are thread-safe and pure: equal input, equal output,
 * for as long as records live.
 */
@FunctionalInterface
public interface BodyForm {
    /**
     * The bytes that count.
     *
     * @param mediaType of the request, in lower case and without parameters; empty if it has none
     * @param body unpacked; not to be changed
     * @return bytes that are equal for bodies that mean the same, and differ for bodies that do not
     */
    byte[] of(String mediaType, byte[] body);

    /**
     * Every byte counts.
     *
     * @return the default
     */
    static BodyForm bytes() {
        return (mediaType, body) -> body;
    }

    /**
     * For {@code application/json} and {@code …+json}: neither white space nor the order of an object's members counts, nor how a
     * character is escaped. Numbers count as they are spelled: 1 and 1.0 differ. A body that is not strict JSON (RFC 8259), has a
     * member twice in one object, or is nested deeper than 200, counts byte by byte.
     *
     * @return a form for callers that write the same JSON in another order when they retry
     * @throws IllegalStateException if there is no Gson, which reads the JSON
     */
    static BodyForm canonicalJson() {
        OptionalDependency.require(
                BodyForm.class,
                "com.google.gson.stream.JsonReader",
                "BodyForm.canonicalJson() needs com.google.code.gson:gson 2.11 or later; add it, or compare bytes()");
        return new CanonicalJson();
    }
}
