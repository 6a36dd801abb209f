package io.idempotence.server.servlet;

import java.io.IOException;

/**
 * A response that presents refusals in a form of its own, for example as a page for people. A filter in front of the {@link
 * IdempotenceFilter} passes on a response wrapper of this type.
 */
public interface RefusalWriter {
    /**
     * Writes the response, its status included. {@code Idempotency-Refusal} is set already, except for {@code request-too-large}. {@code
     * Retry-After} and {@code Retry-After-Ms} are set, too, if a retry helps. No other header is. Add {@code Cache-Control: no-store}, so
     * that no cache keeps the refusal.
     *
     * @param status the HTTP status
     * @param code the refusal's code, as in {@link io.idempotence.http.Refusal#code()}, or {@code request-too-large}
     * @throws IOException if the response cannot be written
     */
    void writeRefusal(int status, String code) throws IOException;
}
