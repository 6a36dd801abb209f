package io.idempotence.server.servlet;

import io.idempotence.internal.OptionalDependency;

/**
 * The rule by which the bodies of two requests under one ID are compared. Method, path, query and media type are always compared; a gzip
 * coding and the boundary of a multipart body never are. Implementations are thread-safe and pure: equal input gives equal output for as
 * long as records exist.
 */
@FunctionalInterface
public interface BodyComparison {
    /**
     * Returns the bytes to compare. Not called for multipart bodies, nor for forms that a filter in front has parsed. What it throws fails
     * the request, and nothing runs.
     *
     * @param mediaType the request's, in lower case and without parameters; empty if it has none
     * @param body the body without gzip coding; must not be changed
     * @return bytes that are equal for bodies with the same meaning, and different for all others
     */
    byte[] bytesToCompare(String mediaType, byte[] body);

    /**
     * Compares every byte.
     *
     * @return the default comparison
     */
    static BodyComparison bytes() {
        return (mediaType, body) -> body;
    }

    /**
     * Compares {@code application/json} and {@code …+json} without regard to white space, the order of an object's members, and how a
     * character is escaped. Numbers are compared as they are spelled: 1 and 1.0 differ. A body is compared byte by byte if it is not strict
     * JSON (RFC 8259), has a member twice in one object, is nested deeper than 200, or has more than 10,000 members in one object and those
     * around it.
     *
     * @return a comparison for callers that write the same JSON in another order when they retry
     * @throws IllegalStateException if Gson, which reads the JSON, is not on the class path
     */
    static BodyComparison canonicalJson() {
        OptionalDependency.require(
                BodyComparison.class,
                "com.google.gson.stream.JsonReader",
                "BodyComparison.canonicalJson() needs com.google.code.gson:gson 2.11 or later; add it, or use bytes()");
        return new CanonicalJson();
    }
}
