package io.idempotence.server.servlet;

import io.idempotence.server.storage.Fingerprint;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletInputStream;
import jakarta.servlet.http.HttpServletRequest;
import java.io.IOException;
import org.jspecify.annotations.Nullable;

/**
 * What has come with a request, read before its ID is claimed.
 *
 * @param body null if the handler gets it from the container, which has parsed it
 */
record Received(Fingerprint fingerprint, byte @Nullable [] body) {
    /**
     * Reads a request's body, or has the container parse it where it would.
     *
     * @param cap bytes
     * @return null if it has more than {@code cap} bytes
     * @throws IllegalStateException if a filter in front has read the body, so that it cannot be compared
     */
    static @Nullable Received from(HttpServletRequest request, int cap, BodyForm form)
            throws IOException, ServletException {
        long declared = request.getContentLengthLong();
        if (declared > cap) {
            return null;
        }
        Parts parts = Parts.of(request);
        if (parts.parsed() != null) {
            Fingerprint fingerprint = RequestFingerprint.of(request, parts.parsed(), cap);
            return fingerprint == null ? null : new Received(fingerprint, null);
        }
        ServletInputStream in = request.getInputStream();
        boolean wasSent = declared > 0 || (request.getHeader("Transfer-Encoding") != null && in.isFinished());
        byte[] body = RequestBody.read(in, declared, cap);
        if (body.length == 0 && (wasSent || MediaTypes.isForm(request.getContentType()))) {
            parts.throwRefusal();
            return new Received(ofConsumed(request), null);
        }
        return body.length > cap ? null : new Received(RequestFingerprint.of(request, body, cap, form), body);
    }

    private static Fingerprint ofConsumed(HttpServletRequest request) {
        if (MediaTypes.isForm(request.getContentType())) {
            return RequestFingerprint.ofParameters(request);
        }
        throw new IllegalStateException(
                "a filter in front of the idempotence filter has read the request body, so that it cannot be"
                        + " compared; put the idempotence filter before it, or let it hand on a request that can be read again");
    }
}
