package io.idempotence.server.servlet;

import io.idempotence.http.IdempotenceHeaders;
import io.idempotence.http.Refusal;
import jakarta.servlet.http.HttpServletRequest;
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

    /** Refuses a request whose body was read. */
    void refuse(HttpServletResponse response, Refusal refusal, Duration retryAfter) throws IOException {
        refuse(response, refusal, retryAfter, null, true);
    }

    /** Refuses a request whose body may not have come yet. */
    void refuseEarly(
            HttpServletRequest request,
            HttpServletResponse response,
            Refusal refusal,
            Duration retryAfter,
            @Nullable String detail)
            throws IOException {
        refuse(response, refusal, retryAfter, detail, hasLength(request));
    }

    void requestTooLarge(HttpServletRequest request, HttpServletResponse response, int limit) throws IOException {
        String detail =
                "The body of a request with an Idempotency-Key may have up to " + limit + " bytes. Nothing was done.";
        write(response, 413, "request-too-large", "The request body is too large.", detail, "", hasLength(request));
    }

    /**
     * Whether an early response has its length from here. Jetty commits a response that has its whole length, and then cannot say any more
     * that it closes the connection because of the unread body. The caller's next request on it would fail. But the end of a response
     * that a filter in front may never complete shows only in its length.
     */
    private static boolean hasLength(HttpServletRequest request) {
        return request.isAsyncStarted();
    }

    private void refuse(
            HttpServletResponse response,
            Refusal refusal,
            Duration retryAfter,
            @Nullable String detail,
            boolean hasLength)
            throws IOException {
        response.setHeader(IdempotenceHeaders.IDEMPOTENCY_REFUSAL, refusal.code());
        if (!retryAfter.isZero()) {
            long millis = retryAfter.toMillis();
            response.setHeader(IdempotenceHeaders.RETRY_AFTER, Long.toString(Math.max(1, (millis + 999) / 1000)));
            response.setHeader(IdempotenceHeaders.RETRY_AFTER_MS, Long.toString(millis));
        }
        String extensions = ",\"retryable\":" + refusal.retryable() + ",\"safeNewId\":" + refusal.safeNewId();
        write(response, refusal.status(), refusal.code(), refusal.title(), detail, extensions, hasLength);
    }

    private void write(
            HttpServletResponse response,
            int status,
            String code,
            String title,
            @Nullable String detail,
            String extensions,
            boolean hasLength)
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
        if (hasLength) {
            response.setContentLength(body.length);
        }
        response.getOutputStream().write(body);
    }

    private static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }
}
