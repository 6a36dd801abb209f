package io.idempotence.server.servlet;

import io.idempotence.internal.Causes;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.Part;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Collection;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The parts of a multipart request, if its servlet has the container parse them. A container parses them before the body is read, or never.
 *
 * @param parsed null if there are none
 * @param refusal the container's exception instead: the servlet has no multipart configuration, or the parts are too large. Both are an
 *     IllegalStateException (Servlet 6, getParts). After the second one the body is consumed
 */
record MultipartBody(
        @Nullable Collection<Part> parsed, @Nullable Exception refusal) {
    private static final Logger LOG = LoggerFactory.getLogger(MultipartBody.class);
    private static final MultipartBody NONE = new MultipartBody(null, null);

    /** @param contentType the request's, null if it has none */
    static MultipartBody of(HttpServletRequest request, @Nullable String contentType)
            throws IOException, ServletException {
        if (!"multipart/form-data".equals(MediaTypes.withoutParameters(contentType))) {
            return NONE;
        }
        try {
            return new MultipartBody(request.getParts(), null);
        } catch (IllegalStateException | ServletException e) {
            // Jetty wraps the IllegalStateException.
            if (!Causes.has(e, IllegalStateException.class)) {
                throw e;
            }
            LOG.debug(
                    "the servlet has no multipart configuration and reads the body itself, or the parts are too large",
                    e);
            return new MultipartBody(null, e);
        }
    }

    /** Throws the container's exception, as without this filter, because the body is consumed. */
    void throwRefusal() throws ServletException {
        if (refusal instanceof RuntimeException e) {
            throw e;
        }
        if (refusal instanceof ServletException e) {
            throw e;
        }
    }

    static byte[] bytes(Part part) {
        try (InputStream in = part.getInputStream()) {
            return in.readAllBytes();
        } catch (IOException e) {
            throw new UncheckedIOException("a part that the container has parsed cannot be read", e);
        }
    }
}
