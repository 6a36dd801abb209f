package io.idempotence.server.servlet;

import java.io.IOException;

/**
 * A response that presents refusals in a form of its own, for example as a page for people. A filter in front of the {@link
 * IdempotenceFilter} passes on a response wrapper of this type.
 */
public interface RefusalWriter {
    /**
     * Writes the response. Its {@code Idempotency-Refusal} and {@code Retry-After} headers are set already.
     *
     * @param code the refusal's code, as in {@link io.idempotence.http.Refusal#code()}, or {@code request-too-large}
     * @throws IOException if the response cannot be written
     */
    void writeRefusal(int status, String code) throws IOException;
}
