package io.idempotence.server.servlet;

import io.idempotence.server.ClaimedExecution;
import io.idempotence.server.servlet.StoredResponse.StoredHeader;
import io.idempotence.server.storage.ClaimResult;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The encoder of a handler's buffered response into the result of its execution. */
final class ResponseEncoder {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotenceFilter.class);

    private final ClaimedExecution execution;

    ResponseEncoder(ClaimedExecution execution) {
        this.execution = execution;
    }

    /** Returns the result of a response that was written or redirected. */
    byte[] result(ResponseBuffer buffer, @Nullable DeferredResponse deferred, int status) {
        return deferred instanceof DeferredResponse.StoredRedirect redirect
                ? redirected(buffer, redirect)
                : written(buffer, status);
    }

    private byte[] redirected(ResponseBuffer written, DeferredResponse.StoredRedirect redirect) {
        ByteBuffer body = written.body();
        List<StoredHeader> kept = new ArrayList<>(keptHeaders(written));
        if (!redirect.clearBuffer() && !isReplayable(written, body, kept)) {
            return ClaimResult.noResult();
        }
        String location = written.sessionIds().removedFrom(redirect.location());
        StoredResponse.Form form = location.equals(redirect.location())
                ? StoredResponse.Form.REDIRECT
                : StoredResponse.Form.ENCODED_REDIRECT;
        kept.removeIf(header -> header.name().equals("Location"));
        kept.add(new StoredHeader("Location", location));
        ByteBuffer withoutIds = written.sessionIds().removedFrom(body);
        return new StoredResponse(form, written.output(), redirect.status(), kept, withoutIds).toBytes();
    }

    /** Returns the result of a response that was written; {@link ClaimResult#noResult} if it cannot be replayed as it was. */
    byte[] written(ResponseBuffer written, int status) {
        ByteBuffer body = written.body();
        List<StoredHeader> kept = keptHeaders(written);
        if (isInterim(status)) {
            LOG.warn(
                    "A handler ended with status {}, which is no response; it is not stored, and duplicates are refused as"
                            + " result-unavailable",
                    status);
            return ClaimResult.noResult();
        }
        if (!isReplayable(written, body, kept)) {
            return ClaimResult.noResult();
        }
        ByteBuffer withoutIds = written.sessionIds().removedFrom(body);
        return new StoredResponse(StoredResponse.Form.WRITTEN, written.output(), status, kept, withoutIds).toBytes();
    }

    /** Whether more follows a status: the final response, or what the connection was upgraded to. */
    private static boolean isInterim(int status) {
        return status >= 100 && status < 200;
    }

    /** Whether the body is all that the client gets. Reports why not. */
    private boolean isReplayable(ResponseBuffer written, ByteBuffer body, List<StoredHeader> kept) {
        if (written.oversize()) {
            execution.oversize();
            return false;
        }
        if (!written.isWhatTheClientGets(body.remaining())) {
            LOG.warn("A handler declared another Content-Length than it wrote, or wrote past the response it was given;"
                    + " its response is not stored, and duplicates are refused as result-unavailable");
            return false;
        }
        if (hidesSessionIds(written, body, kept)) {
            LOG.warn(
                    "A response was compressed after a session ID, or another parameter that counts as a secret, had been put into one of"
                            + " its URLs; it is not stored, and duplicates are refused as result-unavailable;"
                            + " put the filter that compresses before the idempotence filter");
            return false;
        }
        return true;
    }

    /** Whether the handler, or a filter behind this one, has encoded session IDs, so that they cannot be removed. */
    private static boolean hidesSessionIds(ResponseBuffer written, ByteBuffer body, List<StoredHeader> kept) {
        return !written.sessionIds().isEmpty()
                && kept.stream()
                        .anyMatch(header -> header.name().equals("Content-Encoding")
                                && written.sessionIds().mayBeIn(body, header.value()));
    }

    private static List<StoredHeader> keptHeaders(ResponseBuffer written) {
        SessionIds sessionIds = written.sessionIds();
        List<StoredHeader> kept = written.keptHeaders();
        return sessionIds.isEmpty()
                ? kept
                : kept.stream()
                        .map(header -> new StoredHeader(header.name(), sessionIds.removedFrom(header.value())))
                        .toList();
    }
}
