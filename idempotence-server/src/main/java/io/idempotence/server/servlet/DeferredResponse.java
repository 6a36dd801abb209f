package io.idempotence.server.servlet;

import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import org.jspecify.annotations.Nullable;

/** A response whose bytes the container produces: an error or a redirect. */
sealed interface DeferredResponse {
    int status();

    /** Whether the handler wants its caller to get no response. */
    default boolean aborts() {
        return false;
    }

    void applyTo(HttpServletResponse response) throws IOException;

    /** A call of {@code sendError}. */
    record Failure(int status, @Nullable String message) implements DeferredResponse {
        /** Jetty aborts the connection. */
        @Override
        public boolean aborts() {
            return status == -1;
        }

        @Override
        public void applyTo(HttpServletResponse response) throws IOException {
            if (message == null) {
                response.sendError(status);
            } else {
                response.sendError(status, message);
            }
        }
    }

    /** A call of {@code sendRedirect}. */
    record StoredRedirect(String location, int status, boolean clearBuffer) implements DeferredResponse {
        @Override
        public void applyTo(HttpServletResponse response) throws IOException {
            if (status == HttpServletResponse.SC_FOUND && clearBuffer) {
                response.sendRedirect(location);
            } else {
                try {
                    response.sendRedirect(location, status, clearBuffer);
                } catch (NoSuchMethodError servlet60) {
                    // The response was recorded in a container with Servlet 6.1, and this container has 6.0.
                    response.setStatus(status);
                    response.setHeader("Location", location);
                }
            }
        }
    }
}
