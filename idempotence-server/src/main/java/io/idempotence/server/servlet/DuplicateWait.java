package io.idempotence.server.servlet;

import io.idempotence.IdempotenceId;
import io.idempotence.http.IdempotenceHeaders;
import io.idempotence.server.Decision;
import io.idempotence.server.Engine;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.time.Duration;
import java.util.Collections;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Semaphore;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The wait of duplicates for the end of the first attempt, if their callers prefer it ({@code Prefer: wait=5}, RFC 7240, section 4.3).
 *
 * <p>A duplicate waits without a thread, and gets its response in an ASYNC dispatch, if that is sure to work: this filter sees such
 * dispatches, the servlet and every filter in front support asynchronous processing, and no filter in front holds the response back in a
 * way of its own. Otherwise it waits on its thread, and only a few may do so at a time.
 */
final class DuplicateWait {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotenceFilter.class);
    /** The request attribute of a request that waits without a thread. */
    private static final String WAITING = DuplicateWait.class.getName();

    private static final Pattern WAIT =
            Pattern.compile("(?:^|[,;])\\s*wait\\s*=\\s*\"?([0-9]{1,9})\"?\\s*(?:$|[,;])", Pattern.CASE_INSENSITIVE);

    /** The limit of blocked threads. They are the container's, and the first attempt may need one as well. */
    private static final int MAX_BLOCKED = 16;

    private final Semaphore blocked = new Semaphore(MAX_BLOCKED);

    /** The permission of one request to wait. Close it when the wait has begun or ended. */
    final class Turn implements AutoCloseable {
        private final HttpServletRequest request;
        private final HttpServletResponse response;
        private final Duration patience;
        private final boolean withoutThread;
        private boolean blocks;

        private Turn(
                HttpServletRequest request,
                HttpServletResponse response,
                Duration patience,
                boolean withoutThread,
                boolean blocks) {
            this.request = request;
            this.response = response;
            this.patience = patience;
            this.withoutThread = withoutThread;
            this.blocks = blocks;
        }

        /** The longest wait; zero if the request may not wait. */
        Duration patience() {
            return patience;
        }

        /** Returns the decision, or null if it comes in an ASYNC dispatch. */
        Decision.@Nullable Substitute await(IdempotenceId id, CompletableFuture<Decision.Substitute> decision) {
            if (withoutThread && !decision.isDone()) {
                dispatchWhenDecided(id, request, response, decision);
                return null;
            }
            return Engine.waitFor(decision);
        }

        @Override
        public void close() {
            if (blocks) {
                blocks = false;
                blocked.release();
            }
        }
    }

    /** Returns how a request may wait, from what its caller prefers and its settings allow. */
    Turn turn(HttpServletRequest request, HttpServletResponse response, Duration longest, boolean seesDispatches) {
        Duration patience = patience(request, longest);
        if (patience.isZero()) {
            return new Turn(request, response, patience, false, false);
        }
        // If a filter in front has started asynchronous processing, it cannot be started again.
        boolean withoutThread = seesDispatches
                && request.isAsyncSupported()
                && !request.isAsyncStarted()
                && Wrappers.isSureToBeDelivered(response);
        boolean blocks = !withoutThread && blocked.tryAcquire();
        return new Turn(request, response, withoutThread || blocks ? patience : Duration.ZERO, withoutThread, blocks);
    }

    /**
     * Returns how long a request prefers to wait, up to the longest wait; zero without a preference in a known form. The first preference
     * counts.
     */
    private static Duration patience(HttpServletRequest request, Duration longest) {
        for (String line : Collections.list(request.getHeaders(IdempotenceHeaders.PREFER))) {
            Matcher matcher = WAIT.matcher(line);
            if (matcher.find()) {
                Duration preferred = Duration.ofSeconds(Long.parseLong(matcher.group(1)));
                return preferred.compareTo(longest) < 0 ? preferred : longest;
            }
        }
        return Duration.ZERO;
    }

    private void dispatchWhenDecided(
            IdempotenceId id,
            HttpServletRequest request,
            HttpServletResponse response,
            CompletableFuture<Decision.Substitute> decision) {
        // Set now, not after the decision: by then the container may have reused this object for another request.
        request.setAttribute(WAITING, new Waiting(this, id, decision));
        AsyncContext async = request.startAsync(request, response);
        // The wait has its own time limit. A container's timeout would send an empty response, as if it were a success.
        async.setTimeout(0);
        Leaving leaving = new Leaving(decision);
        async.addListener(leaving);
        decision.thenRun(() -> {
            if (!leaving.gone) {
                dispatch(async, response);
            }
        });
    }

    /** Dispatches the request, or ends it if that fails, because no timeout would end it. */
    private static void dispatch(AsyncContext async, HttpServletResponse response) {
        try {
            async.dispatch();
        } catch (IllegalStateException e) {
            LOG.debug("The caller of a waiting duplicate disconnected", e);
        } catch (Throwable e) {
            fail(async, response, e);
        }
    }

    private static void fail(AsyncContext async, HttpServletResponse response, Throwable why) {
        LOG.error(
                "A waiting duplicate could not be dispatched to get its response; it gets a 500 and may be retried",
                why);
        try {
            response.sendError(HttpServletResponse.SC_INTERNAL_SERVER_ERROR);
        } catch (IOException | RuntimeException e) {
            LOG.warn("The container did not accept the error response of a waiting duplicate", e);
        } finally {
            async.complete();
        }
    }

    /** A request that waits for its decision, or has it: its response is sent in the ASYNC dispatch that follows. */
    private record Waiting(DuplicateWait by, IdempotenceId id, CompletableFuture<Decision.Substitute> decision) {}

    /** The decision for a request that waited. */
    record Decided(IdempotenceId id, Decision.Substitute decision) {}

    /** Returns the decision for a request that waited here; null if it did not wait, still waits, or already has its response. */
    @Nullable
    Decided takeDecided(HttpServletRequest request) {
        if (request.getDispatcherType() == DispatcherType.ASYNC
                && request.getAttribute(WAITING) instanceof Waiting waiting
                && waiting.by == this
                && waiting.decision.isDone()
                && !waiting.decision.isCompletedExceptionally()) {
            request.removeAttribute(WAITING);
            return new Decided(waiting.id, waiting.decision.join());
        }
        return null;
    }

    /** A listener that cancels the wait when the request ends, for example because the client disconnected. */
    private static final class Leaving implements AsyncListener {
        private final CompletableFuture<Decision.Substitute> decision;
        volatile boolean gone;

        Leaving(CompletableFuture<Decision.Substitute> decision) {
            this.decision = decision;
        }

        @Override
        public void onTimeout(AsyncEvent event) {
            leave();
        }

        @Override
        public void onError(AsyncEvent event) {
            leave();
        }

        @Override
        public void onComplete(AsyncEvent event) {
            leave();
        }

        private void leave() {
            gone = true;
            decision.cancel(false);
        }

        @Override
        public void onStartAsync(AsyncEvent event) {
            // the processing is started only once
        }
    }
}
