package io.idempotence.server.servlet;

import jakarta.servlet.AsyncContext;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The asynchronous processing of one protected request: its starts, its dispatches and its end. */
final class AsyncProcessing implements HeldRequest.AsyncStarter, HeldAsyncContext.Follower {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotenceFilter.class);

    private final Dispatches dispatches;
    private final ExecutionEnd end;
    private final boolean seesDispatches;
    private final HeldBody body;
    private final BypassWarning bypassWarning;
    private final HeldRequest request;
    private final HeldResponse response;
    private final ResponseBuffer buffer;

    private volatile @Nullable HeldAsyncContext latest;
    private volatile @Nullable Throwable undelivered;
    private volatile @Nullable HeldAsyncContext dispatchedLast;
    private volatile @Nullable FailedListener failedListener;

    /**
     * The failure of a listener.
     *
     * @param during the asynchronous processing in which the listener was called; null if a filter in front has begun it. The failure does
     *     not count for another one that the handler begins later
     */
    private record FailedListener(@Nullable HeldAsyncContext during, Throwable failure) {}

    AsyncProcessing(
            Dispatches dispatches,
            ExecutionEnd end,
            boolean seesDispatches,
            HttpServletRequest request,
            HeldBody body,
            BypassWarning bypassWarning) {
        this.dispatches = dispatches;
        this.end = end;
        this.seesDispatches = seesDispatches;
        this.body = body;
        this.bypassWarning = bypassWarning;
        this.request = new HeldRequest(request, body, bypassWarning, this);
        this.response = end.response().including(this::isIncluding);
        this.buffer = end.buffer();
        dispatches.onFailedListener(this::listenerFailed);
    }

    /** The request that the handler reads. */
    HeldRequest request() {
        return request;
    }

    private HttpServletRequest container() {
        return request.container();
    }

    private boolean isIncluding() {
        return dispatches.isDispatching() && request.getDispatcherType() == DispatcherType.INCLUDE;
    }

    // ---- dispatch

    /** The request and response of the handler in an ASYNC dispatch. */
    record ForHandler(ServletRequest request, ServletResponse response) {}

    /**
     * Returns what the handler gets in an ASYNC dispatch: the request and response with which it started the processing, around those that
     * arrived.
     *
     * @throws ServletException if {@link #abort} has ended the processing
     */
    ForHandler inDispatch(HttpServletRequest arrived, HttpServletResponse target) throws ServletException {
        if (undelivered != null) {
            throw new ServletException("asynchronous processing ended without a whole response", undelivered);
        }
        HttpServletRequest ofHandler = arrived;
        if (!HeldRequest.reads(arrived, body)) {
            request.setRequest(arrived);
            ofHandler = request;
        }
        HeldAsyncContext started = latest;
        ServletResponse toHandler = response;
        if (started != null && (started.keepsResponse() || HeldResponse.in(target, buffer) != null)) {
            toHandler = started.getResponse();
        }
        HeldResponse held = HeldResponse.in(toHandler, buffer);
        if (held != null) {
            held.deliverTo(target, toHandler);
        }
        return new ForHandler(ofHandler, toHandler);
    }

    /** Watches asynchronous processing that a filter in front started. Its response is no longer held. */
    void adopt() {
        try {
            buffer.stopHolding();
            watch();
        } catch (Throwable e) {
            end.endUnseen();
            throw e;
        }
    }

    /**
     * In Undertow, asynchronous processing that another thread completes is over at once, and not when the dispatch ends. Elsewhere the
     * handler may still run in another dispatch.
     */
    private void watch() {
        AsyncContext begun;
        try {
            begun = container().getAsyncContext();
        } catch (IllegalStateException notAny) {
            if (!Wrappers.isOfUndertow(response.target())) {
                throw notAny;
            }
            end.finish();
            return;
        }
        begun.addListener(new Ending());
    }

    // ---- start

    /** Lets the container choose the request and response, as it does without this filter. */
    @Override
    public AsyncContext startAsync() {
        if (seesDispatches || Wrappers.isOfUndertow(response.target())) {
            AsyncContext container = container().startAsync();
            ServletRequest chosen = container.getRequest();
            ServletResponse to = container.getResponse();
            return HeldResponse.in(to, buffer) != null
                    // Undertow chooses the pair that the last filter passed on.
                    ? started(new HeldAsyncContext(container, this, chosen, to, false, isOriginal(chosen, to)))
                    : started(new HeldAsyncContext(container, this, held(chosen), held(to), false, true));
        }
        // This filter sees no dispatches. It observes them only through the pair that the container is given.
        HeldRequest chosen = held(Wrappers.innermost(container()));
        HeldResponse to = held(Wrappers.innermost(response.target()));
        return started(new HeldAsyncContext(container().startAsync(chosen, to), this, chosen, to, false, true));
    }

    private HeldRequest held(ServletRequest ofContainer) {
        return ofContainer == container()
                ? request
                : new HeldRequest((HttpServletRequest) ofContainer, body, bypassWarning, this);
    }

    private HeldResponse held(ServletResponse ofContainer) {
        return ofContainer == response.target()
                ? response
                : new HeldResponse((HttpServletResponse) ofContainer, buffer).including(this::isIncluding);
    }

    /** Gives the container the response that arrived in this dispatch. {@link #inDispatch} gives the handler its own response again. */
    @Override
    public AsyncContext startAsync(ServletRequest ofHandler, ServletResponse toHandler) {
        boolean isHeld = HeldResponse.in(toHandler, buffer) != null;
        AsyncContext container = isHeld && seesDispatches
                ? container().startAsync(ofHandler, response.target())
                : container().startAsync(ofHandler, toHandler);
        if (!isHeld) {
            buffer.bypassed();
        }
        return started(new HeldAsyncContext(
                container, this, ofHandler, toHandler, isHeld && seesDispatches, isOriginal(ofHandler, toHandler)));
    }

    /** Whether both would be the container's own without this filter. */
    private boolean isOriginal(ServletRequest ofHandler, ServletResponse toHandler) {
        return ofHandler == request
                && toHandler == response
                && container() == Wrappers.innermost(container())
                && response.target() == Wrappers.innermost(response.target());
    }

    private HeldAsyncContext started(HeldAsyncContext context) {
        context.watch(new Ending());
        latest = context;
        dispatches.startedAsync();
        return context;
    }

    @Override
    public @Nullable AsyncContext asyncContext() {
        HeldAsyncContext started = latest;
        AsyncContext container = container().getAsyncContext();
        if (container == null) {
            // A container throws if there is none. The request of MockMvc returns null.
            return null;
        }
        return started != null ? started : new HeldAsyncContext(container, this, request, response, false, true);
    }

    /** Stops holding the response before a dispatch that this filter does not see, because nothing would deliver it. */
    @Override
    public Runnable beforeDispatch() {
        if (dispatches.isCompleting()) {
            throw new IllegalStateException("asynchronous processing was completed, and cannot be dispatched any more");
        }
        HeldAsyncContext before = dispatchedLast;
        dispatchedLast = latest;
        if (!seesDispatches) {
            buffer.stopHolding();
            if (!Wrappers.isSureToBeDelivered(response.target())) {
                buffer.mayBeEncodedInFront();
            }
        }
        return () -> dispatchedLast = before;
    }

    @Override
    public boolean completedDispatched(AsyncContext container) {
        HeldAsyncContext started = latest;
        if (started == null || started != dispatchedLast) {
            return false;
        }
        // Undertow runs the dispatch nevertheless, but would announce the end before it.
        if (!Wrappers.isOfUndertow(response.target())) {
            container.complete();
        }
        return true;
    }

    /**
     * Ends asynchronous processing whose response was not written or delivered, or only in part. Completing it would make the response look
     * whole. A container cuts a response short only if a dispatch throws.
     */
    @Override
    public void abort(AsyncContext container, Throwable why) {
        if (!seesDispatches) {
            if (container.getTimeout() <= 0) {
                // The container has no timeout, so nothing else would end the processing.
                if (!response.target().isCommitted()) {
                    response.target().setStatus(HttpServletResponse.SC_INTERNAL_SERVER_ERROR);
                }
                container.complete();
            }
            return;
        }
        undelivered = why;
        try {
            container.dispatch();
        } catch (IllegalStateException e) {
            LOG.debug("The container has ended the response already", e);
        }
    }

    private Runnable listenerFailed(Throwable failure) {
        FailedListener failed = new FailedListener(latest, failure);
        failedListener = failed;
        return () -> endAfter(failed);
    }

    /** Ends the processing in which a listener has failed, as a container does if the listener has not ended it. */
    private void endAfter(FailedListener failed) {
        boolean isOver = latest != failed.during || (failed.during != null && dispatchedLast == failed.during);
        if (!isOver && !end.hasEnded()) {
            // Jetty announces no end if a dispatch throws after bytes have left.
            end.endUnseen();
            abort(container().getAsyncContext(), failed.failure);
        }
    }

    private final class Ending implements AsyncListener {
        @Override
        public void onTimeout(AsyncEvent event) {
            end.containerGaveUp();
        }

        @Override
        public void onComplete(AsyncEvent event) {
            buffer.drop();
            if (buffer.passesThrough() && (!end.gaveUp() || buffer.isWhole())) {
                end.finish();
            } else {
                // The container gave up waiting, or its dispatch failed. The work may still run.
                end.endUnseen();
            }
            end.dispatchEnded();
        }

        @Override
        public void onError(AsyncEvent event) {
            // The client disconnected, or a dispatch failed. onComplete follows. The work may still run.
            end.containerGaveUp();
        }

        @Override
        public void onStartAsync(AsyncEvent event) {
            // started() adds a listener for each start
        }
    }

    @Override
    public boolean completesAfterDispatch() {
        return dispatches.completesAfterDispatch();
    }

    @Override
    public void finish() {
        FailedListener failed = failedListener;
        if (failed != null && failed.during == latest && !end.hasEndedItself()) {
            end.endUnseen();
            throw new IllegalStateException("a listener failed before the response was whole", failed.failure);
        }
        end.finish();
    }

    @Override
    public boolean gaveUp() {
        return end.gaveUp();
    }

    @Override
    public Runnable entered(Runnable task) {
        return dispatches.entered(task);
    }
}
