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
 * The writer of this library's own responses (RFC 9457), unless the response is a {@link RefusalWriter}. All text comes from this project,
 * none from the request.
 */
final class ProblemWriter {
    private final String base;

    ProblemWriter(String base) {
        this.base = base;
    }

    /**
     * Refuses a request whose body was read.
     *
     * @param isAsyncInFront whether a filter in front has begun asynchronous processing. It may never complete the response, and only a
     *     length shows the end
     */
    void refuse(HttpServletResponse response, Refusal refusal, Duration retryAfter, boolean isAsyncInFront)
            throws IOException {
        refuse(response, refusal, retryAfter, null, isAsyncInFront || !Wrappers.mayChangeBodies(response));
    }

    /** Refuses a request whose body may not have come yet. */
    void refuseEarly(
            HttpServletRequest request,
            HttpServletResponse response,
            Refusal refusal,
            Duration retryAfter,
            @Nullable String detail)
            throws IOException {
        refuse(response, refusal, retryAfter, detail, setsLength(request));
    }

    void requestTooLarge(HttpServletRequest request, HttpServletResponse response, int limit) throws IOException {
        String detail =
                "The body of a request with an Idempotency-Key may have up to " + limit + " bytes. Nothing was done.";
        write(response, 413, "request-too-large", "The request body is too large.", detail, "", setsLength(request));
    }

    /**
     * Whether to set the length of an early response. With a length, Jetty commits the response at once. If the request's body has not
     * arrived, Jetty then closes the connection without announcing it, and the caller's next request on that connection fails. Without
     * a length, Jetty announces the close. But if a filter in front has begun asynchronous processing, it may never complete the response,
     * and only a length shows the end.
     */
    private static boolean setsLength(HttpServletRequest request) {
        return request.isAsyncStarted();
    }

    private void refuse(
            HttpServletResponse response,
            Refusal refusal,
            Duration retryAfter,
            @Nullable String detail,
            boolean setsLength)
            throws IOException {
        response.setHeader(IdempotenceHeaders.IDEMPOTENCY_REFUSAL, refusal.code());
        if (!retryAfter.isZero()) {
            long millis = retryAfter.toMillis();
            response.setHeader(IdempotenceHeaders.RETRY_AFTER, Long.toString(Math.max(1, (millis + 999) / 1000)));
            response.setHeader(IdempotenceHeaders.RETRY_AFTER_MS, Long.toString(millis));
        }
        String extensions = ",\"retryable\":" + refusal.retryable() + ",\"safeNewId\":" + refusal.safeNewId();
        write(response, refusal.status(), refusal.code(), refusal.title(), detail, extensions, setsLength);
    }

    private void write(
            HttpServletResponse response,
            int status,
            String code,
            String title,
            @Nullable String detail,
            String extensions,
            boolean setsLength)
            throws IOException {
        RefusalWriter own = Wrappers.refusalWriter(response);
        if (own != null) {
            own.writeRefusal(status, code);
            return;
        }
        String json = "{\"type\":\"" + base + code + "\",\"title\":" + quoted(title) + ",\"status\":" + status
                + (detail == null ? "" : ",\"detail\":" + quoted(detail)) + extensions + "}";
        response.setStatus(status);
        response.setContentType("application/problem+json");
        response.setHeader("Cache-Control", "no-store");
        byte[] body = json.getBytes(StandardCharsets.UTF_8);
        if (setsLength) {
            response.setContentLength(body.length);
        }
        if (Wrappers.overrideOnlyWriter(response)) {
            response.setCharacterEncoding("UTF-8");
            response.getWriter().write(json);
            return;
        }
        response.getOutputStream().write(body);
    }

    private static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }
}
