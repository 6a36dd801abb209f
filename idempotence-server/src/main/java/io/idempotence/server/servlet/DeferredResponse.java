package io.idempotence.server.servlet;

import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import org.jspecify.annotations.Nullable;

/** A response that the container makes from less than its bytes. */
sealed interface DeferredResponse {
    int status();

    void applyTo(HttpServletResponse response) throws IOException;

    /** {@code sendError}. */
    record Failure(int status, @Nullable String message) implements DeferredResponse {
        @Override
        public void applyTo(HttpServletResponse response) throws IOException {
            if (message == null) {
                response.sendError(status);
            } else {
                response.sendError(status, message);
            }
        }
    }

    /** {@code sendRedirect}. */
    record Redirect(String location, int status, boolean clearBuffer) implements DeferredResponse {
        @Override
        public void applyTo(HttpServletResponse response) throws IOException {
            if (status == HttpServletResponse.SC_FOUND && clearBuffer) {
                response.sendRedirect(location);
            } else {
                try {
                    response.sendRedirect(location, status, clearBuffer);
                } catch (NoSuchMethodError servlet60) {
                    // Recorded by a node whose container has Servlet 6.1.
                    response.setStatus(status);
                    response.setHeader("Location", location);
                }
            }
        }
    }
}
