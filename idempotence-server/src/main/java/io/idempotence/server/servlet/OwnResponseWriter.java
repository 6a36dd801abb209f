package io.idempotence.server.servlet;

import io.idempotence.IdempotenceException;
import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import io.idempotence.server.Decision;
import io.idempotence.server.Engine;
import io.idempotence.server.storage.CorruptRecordException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The writer of responses that do not come from the handler: replays and refusals. */
final class OwnResponseWriter {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotenceFilter.class);
    private static final Duration OVERLOAD_RETRY = Duration.ofSeconds(1);

    private final Engine engine;
    private final FilterConfiguration config;
    private final ProblemWriter problems;
    private final MemoryBudget memory;
    private final AtomicBoolean ambiguousScopeLogged = new AtomicBoolean();

    OwnResponseWriter(Engine engine, FilterConfiguration config, ProblemWriter problems, MemoryBudget memory) {
        this.engine = engine;
        this.config = config;
        this.problems = problems;
        this.memory = memory;
    }

    /** Logs the first such request: behind a gateway that adds its line, every request is one. */
    void refuseAmbiguousScope(AmbiguousScopeException why, HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        if (ambiguousScopeLogged.compareAndSet(false, true)) {
            LOG.warn("Refused a request, and will refuse others like it: {}", why.getMessage());
        }
        refuseInvalidKey(why, request, response);
    }

    /** @param why says what is wrong with the header of the ID, or of its scope */
    void refuseInvalidKey(IdempotenceException why, HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        String detail = "Fix the header: " + why.getMessage() + ".";
        send(
                request,
                response,
                () -> problems.refuseEarly(request, response, Refusal.KEY_INVALID, Duration.ZERO, detail));
    }

    void refuseMissingKey(HttpServletRequest request, HttpServletResponse response) throws IOException {
        String detail =
                "Send the header Idempotency-Key with a new UUID for each operation, and the same one for each retry.";
        send(
                request,
                response,
                () -> problems.refuseEarly(request, response, Refusal.KEY_MISSING, Duration.ZERO, detail));
    }

    void refuseNotTaken(RequestNotTakenException why, HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        send(request, response, () -> {
            if (why.isTooLarge()) {
                problems.requestTooLarge(request, response, config.maxRequestBody());
            } else {
                problems.refuseEarly(request, response, Refusal.OVERLOADED, OVERLOAD_RETRY, null);
            }
        });
    }

    /** Responds to a request in the dispatch that brought it. */
    void respond(
            IdempotenceId id, Decision.Substitute decision, HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        send(request, response, () -> give(id, decision, request, response));
    }

    /** Gives a request that waited its response, in an ASYNC dispatch. */
    void give(IdempotenceId id, Decision.Substitute decision, HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        boolean isAsyncInFront = request.isAsyncStarted();
        if (decision instanceof Decision.Replay replay) {
            replay(id, replay.result(), response, isAsyncInFront);
        } else if (decision instanceof Decision.Refuse refuse) {
            problems.refuse(response, refuse.refusal(), refuse.retryAfter(), isAsyncInFront);
        }
    }

    private void replay(IdempotenceId id, byte[] result, HttpServletResponse response, boolean isAsyncInFront)
            throws IOException {
        try (MemoryBudget.Share held = memory.share()) {
            if (held.reserve(2L * result.length)) {
                ReplayWriter.give(StoredResponse.fromBytes(result), response, isAsyncInFront);
            } else {
                problems.refuse(response, Refusal.OVERLOADED, OVERLOAD_RETRY, isAsyncInFront);
            }
        } catch (CorruptRecordException e) {
            Decision.Refuse refuse = engine.unreadable(id, e);
            problems.refuse(response, refuse.refusal(), refuse.retryAfter(), isAsyncInFront);
        }
    }

    @FunctionalInterface
    private interface OwnResponse {
        void give() throws IOException;
    }

    /**
     * If a filter in front has started asynchronous processing, it may never be completed, and the container takes no other request from
     * this connection until its timeout. So the response is flushed, and over HTTP/1.1 the connection closes.
     */
    private static void send(HttpServletRequest request, HttpServletResponse response, OwnResponse own)
            throws IOException {
        boolean isAsyncInFront = request.isAsyncStarted();
        if (isAsyncInFront && request.getProtocol().startsWith("HTTP/1.")) {
            response.setHeader("Connection", "close");
        }
        own.give();
        if (isAsyncInFront) {
            response.flushBuffer();
        }
    }
}
