package io.idempotence.server.servlet;

import io.idempotence.http.IdempotenceHeaders;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.ByteBuffer;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/** The writer of stored responses (promise P4). */
final class ReplayWriter {
    private ReplayWriter() {}

    /** Writes a stored response in the way the handler gave it. */
    static void give(StoredResponse stored, HttpServletResponse response) throws IOException {
        response.setHeader(IdempotenceHeaders.IDEMPOTENT_REPLAYED, "true");
        boolean isRedirect =
                stored.form() == StoredResponse.Form.REDIRECT || stored.form() == StoredResponse.Form.ENCODED_REDIRECT;
        String location = "";
        String before = "";
        for (StoredResponse.Header header : stored.headers()) {
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
                write(stored, response);
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
            writeBody(stored, response);
        }
        new DeferredResponse.StoredRedirect(location, stored.status(), clearBuffer).applyTo(response);
    }

    /** Writes the body, if there is one. Containers and filters in front treat a response as empty only if its stream is not touched. */
    private static void write(StoredResponse stored, HttpServletResponse response) throws IOException {
        boolean mayHaveBody = stored.status() >= 200 && stored.status() != 204 && stored.status() != 304;
        if (mayHaveBody && stored.body().hasRemaining()) {
            if (textFor(response, stored) == null) {
                response.setContentLength(stored.body().remaining());
            }
            writeBody(stored, response);
        }
    }

    /** Returns how to write the body with the writer; null if no filter in front can see a difference to the stream. */
    private static StoredResponse.@Nullable Text textFor(HttpServletResponse response, StoredResponse stored) {
        return Wrappers.overrideWriter(response) ? stored.text() : null;
    }

    private static void writeBody(StoredResponse stored, HttpServletResponse response) throws IOException {
        ByteBuffer body = stored.body();
        StoredResponse.Text text = textFor(response, stored);
        if (text != null) {
            writeText(body, text, response);
            return;
        }
        response.getOutputStream().write(body.array(), body.arrayOffset() + body.position(), body.remaining());
    }

    /** Writes the body with the writer. Its length is left open, because a filter in front may change the text. */
    private static void writeText(ByteBuffer body, StoredResponse.Text text, HttpServletResponse response)
            throws IOException {
        if (!text.encoding().equalsIgnoreCase(response.getCharacterEncoding())) {
            response.setCharacterEncoding(text.encoding());
        }
        PrintWriter writer = response.getWriter();
        writer.append(Charset.forName(text.encoding()).decode(body));
        if (text.flushed()) {
            writer.flush();
        }
    }
}
