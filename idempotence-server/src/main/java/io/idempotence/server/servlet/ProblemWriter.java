package io.idempotence.server.servlet;

import io.idempotence.http.IdempotenceHeaders;
import io.idempotence.http.Refusal;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * The writer of the framework's own responses (RFC 9457), unless the response is a {@link RefusalWriter}. All text comes from this project,
 * none from the request.
 */
final class ProblemWriter {
    private final String base;

    ProblemWriter(String base) {
        this.base = base;
    }

    void refuse(HttpServletResponse response, Refusal refusal, Duration retryAfter, @Nullable String detail)
            throws IOException {
        response.setHeader(IdempotenceHeaders.IDEMPOTENCY_REFUSAL, refusal.code());
        if (!retryAfter.isZero()) {
            long millis = retryAfter.toMillis();
            response.setHeader(IdempotenceHeaders.RETRY_AFTER, Long.toString(Math.max(1, (millis + 999) / 1000)));
            response.setHeader(IdempotenceHeaders.RETRY_AFTER_MS, Long.toString(millis));
        }
        String extensions = ",\"retryable\":" + refusal.retryable() + ",\"safeNewId\":" + refusal.safeNewId();
        write(response, refusal.status(), refusal.code(), refusal.title(), detail, extensions);
    }

    void requestTooLarge(HttpServletResponse response, int limit) throws IOException {
        String detail =
                "The body of a request with an Idempotency-Key may have up to " + limit + " bytes. Nothing was done.";
        write(response, 413, "request-too-large", "The request body is too large.", detail, "");
    }

    private void write(
            HttpServletResponse response,
            int status,
            String code,
            String title,
            @Nullable String detail,
            String extensions)
            throws IOException {
        RefusalWriter own = Wrappers.refusalWriter(response);
        if (own != null) {
            own.writeRefusal(status, code);
            return;
        }
        String json = "{\"type\":\"" + base + code + "\",\"title\":" + quoted(title) + ",\"status\":" + status
                + (detail == null ? "" : ",\"detail\":" + quoted(detail)) + extensions + "}";
        byte[] body = json.getBytes(StandardCharsets.UTF_8);
        response.setStatus(status);
        response.setContentType("application/problem+json");
        response.setHeader("Cache-Control", "no-store");
        // Without a length, so that the response is not committed yet: if the request's body has not come, the
        // container can still say
        // that it closes the connection.
        response.getOutputStream().write(body);
    }

    private static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }
}
