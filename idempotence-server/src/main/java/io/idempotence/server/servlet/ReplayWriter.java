package io.idempotence.server.servlet;

import io.idempotence.http.IdempotenceHeaders;
import io.idempotence.server.servlet.StoredResponse.StoredHeader;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/** The writer of stored responses (promise P4). */
final class ReplayWriter {
    private ReplayWriter() {}

    /**
     * Writes a stored response in the way the handler gave it.
     *
     * @param isAsyncInFront whether a filter in front has begun asynchronous processing. It may never complete the response, and only a
     *     length shows the end
     */
    static void give(StoredResponse stored, HttpServletResponse response, boolean isAsyncInFront) throws IOException {
        response.setHeader(IdempotenceHeaders.IDEMPOTENT_REPLAYED, "true");
        boolean isRedirect =
                stored.form() == StoredResponse.Form.REDIRECT || stored.form() == StoredResponse.Form.ENCODED_REDIRECT;
        String location = "";
        String before = "";
        for (StoredHeader header : stored.headers()) {
            if (header.name().equals("Content-Type")) {
                response.setContentType(header.value());
            } else if (isRedirect && header.name().equals("Location")) {
                location = header.value();
            } else if (header.name().equals(before)) {
                response.addHeader(header.name(), header.value());
            } else {
                // Replaces what a filter in front may have set, as the handler did.
                response.setHeader(header.name(), header.value());
            }
            before = header.name();
        }
        switch (stored.form()) {
            case WRITTEN -> {
                response.setStatus(stored.status());
                write(stored, response, isAsyncInFront);
            }
            case ERROR -> {
                String message = stored.body().hasRemaining()
                        ? StandardCharsets.UTF_8.decode(stored.body()).toString()
                        : null;
                new DeferredResponse.Failure(stored.status(), message).applyTo(response);
            }
            case REDIRECT -> redirect(stored, location, response);
            // The container adds the session ID of this caller.
            case ENCODED_REDIRECT -> redirect(stored, response.encodeRedirectURL(location), response);
        }
    }

    private static void redirect(StoredResponse stored, String location, HttpServletResponse response)
            throws IOException {
        boolean clearBuffer = !stored.body().hasRemaining();
        if (!clearBuffer) {
            write(stored.body(), encodingFor(response, stored), response);
        }
        new DeferredResponse.StoredRedirect(location, stored.status(), clearBuffer).applyTo(response);
    }

    /**
     * Writes the body, if there is one. Containers and filters in front treat a response as empty only if its stream is not touched. A
     * filter in front that may change the length gets one only if the handler declared one, and sees the stream end as the handler ended
     * it.
     */
    private static void write(StoredResponse stored, HttpServletResponse response, boolean isAsyncInFront)
            throws IOException {
        boolean mayHaveBody = stored.status() >= 200 && stored.status() != 204 && stored.status() != 304;
        boolean hasBody = mayHaveBody && stored.body().hasRemaining();
        boolean mayBeChanged = Wrappers.mayChangeBodies(response);
        String encoding = encodingFor(response, stored);
        // Spring Security compares a length with the number of characters, and would add its headers too late.
        boolean isLengthSure = !mayBeChanged && encoding == null;
        boolean hasLength = hasBody && (stored.output().lengthDeclared() || isLengthSure);
        if (hasLength || (mayHaveBody && isAsyncInFront)) {
            response.setContentLength(stored.body().remaining());
        }
        if (hasBody) {
            write(stored.body(), encoding, response);
        }
        if (mayBeChanged) {
            stored.output().endOn(response, encoding != null);
        }
    }

    /** Returns the encoding of a body to write with the writer; null if no filter in front can see a difference to the stream. */
    private static @Nullable String encodingFor(HttpServletResponse response, StoredResponse stored) {
        return Wrappers.overrideWriter(response) ? stored.output().encoding() : null;
    }

    /** @param encoding of {@link #encodingFor} */
    private static void write(ByteBuffer body, @Nullable String encoding, HttpServletResponse response)
            throws IOException {
        if (encoding == null) {
            response.getOutputStream().write(body.array(), body.arrayOffset() + body.position(), body.remaining());
            return;
        }
        if (!encoding.equalsIgnoreCase(response.getCharacterEncoding())) {
            response.setCharacterEncoding(encoding);
        }
        response.getWriter().append(Charset.forName(encoding).decode(body));
    }
}
