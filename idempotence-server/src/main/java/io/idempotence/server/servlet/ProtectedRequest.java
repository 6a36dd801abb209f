package io.idempotence.server.servlet;

import io.idempotence.server.ClaimedExecution;
import io.idempotence.server.Decision;
import io.idempotence.server.Verdict;
import io.idempotence.server.storage.CorruptRecordException;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One request that holds a claim, from its first dispatch to the end of its last one.
 *
 * <p>It ends exactly once: when the handler returns, when it throws, when it completes its asynchronous processing, or when the container
 * gives that up. Then the execution is recorded, and only then the response leaves.
 *
 * <p>In every dispatch the filters in front wrap what the container has, this exchange comes next, and the filters behind it and the
 * handler see what they have seen before. So whoever looks for a wrapper of its own finds it, on either side.
 */
final class ProtectedRequest {
    private static final Logger LOG = LoggerFactory.getLogger(ProtectedRequest.class);
    private static final String ATTRIBUTE = ProtectedRequest.class.getName();

    private final ClaimedExecution execution;
    private final FilterConfiguration config;
    private final ProblemWriter problems;
    private final boolean seesDispatches;
    /** Whether {@link #dispatchesEnded} is called. */
    private final boolean seesRequestEnds;

    private final RequestContent content;
    private final HeldBody body;
    private final HandlerHeaders headers;
    private final ResponseBuffer buffer;
    private final HeldRequest request;
    private final HeldResponse response;

    private final AtomicBoolean ended = new AtomicBoolean();
    private volatile boolean awaitsErrorPage;
    private volatile boolean gaveUp;
    private volatile @Nullable Throwable notGiven;

    // Shared by the dispatching thread and the threads of asynchronous handlers; guarded by this object's lock, never
    // across I/O.
    private final List<Runnable> afterDispatch = new ArrayList<>();
    private boolean dispatching;
    private boolean completing;
    private boolean asyncStarted;
    private @Nullable HeldAsyncContext asyncContext;

    private ProtectedRequest(
            ClaimedExecution execution,
            FilterConfiguration config,
            ProblemWriter problems,
            boolean seesDispatches,
            boolean seesRequestEnds,
            HttpServletRequest request,
            RequestContent content,
            HttpServletResponse response) {
        this.execution = execution;
        this.config = config;
        this.problems = problems;
        this.seesDispatches = seesDispatches;
        this.seesRequestEnds = seesRequestEnds;
        this.content = content;
        this.headers = new HandlerHeaders(config.keptHeaders());
        this.body = new HeldBody(content, config.formLimits(), this::whenDispatched);
        this.request = new HeldRequest(request, body, this);
        this.buffer = newBuffer(content.memory());
        this.response = buffer.response(response);
    }

    private ResponseBuffer newBuffer(MemoryBudget.Share memory) {
        return new ResponseBuffer(config.maxResponseBody(), headers, memory, this::whenDispatched, this::gaveUp);
    }

    /** Claims {@code request} for the filter: whoever sees it again finds it here. */
    static ProtectedRequest begin(
            ClaimedExecution execution,
            FilterConfiguration config,
            ProblemWriter problems,
            boolean seesDispatches,
            boolean seesRequestEnds,
            HttpServletRequest request,
            RequestContent content,
            HttpServletResponse response) {
        ProtectedRequest begun = new ProtectedRequest(
                execution, config, problems, seesDispatches, seesRequestEnds, request, content, response);
        request.setAttribute(ATTRIBUTE, begun);
        return begun;
    }

    /** The protected request of which {@code request} is a part; null if it is not protected. */
    static @Nullable ProtectedRequest of(ServletRequest request) {
        return (ProtectedRequest) request.getAttribute(ATTRIBUTE);
    }

    boolean isOf(FilterConfiguration filter) {
        return config == filter;
    }

    ClaimedExecution execution() {
        return execution;
    }

    // ---- dispatches

    /** Runs the handler in the REQUEST dispatch that made this exchange. */
    void firstDispatch(FilterChain chain) throws IOException, ServletException {
        dispatch(chain, request, response);
    }

    /** Goes on in a dispatch after the first. */
    void laterDispatch(FilterChain chain, HttpServletRequest arrived, HttpServletResponse target)
            throws IOException, ServletException {
        if (arrived.getDispatcherType() == DispatcherType.ASYNC) {
            asyncDispatch(chain, arrived, target);
        } else if (arrived.getDispatcherType() == DispatcherType.ERROR) {
            errorPage(chain, arrived, target);
        } else {
            chain.doFilter(arrived, target);
        }
    }

    /** Runs the handler in an ASYNC dispatch. */
    private void asyncDispatch(FilterChain chain, HttpServletRequest arrived, HttpServletResponse target)
            throws IOException, ServletException {
        if (notGiven != null) {
            throw new ServletException("the container or a filter in front did not take a response", notGiven);
        }
        HttpServletRequest ofHandler = arrived;
        if (!HeldRequest.isBehind(arrived, this)) {
            request.setRequest(arrived);
            ofHandler = request;
        }
        HeldAsyncContext started = startedContext();
        ServletResponse toHandler = response;
        if (started != null && (started.keepsResponse() || HeldResponse.in(target, buffer) != null)) {
            toHandler = started.getResponse();
        }
        HeldResponse held = HeldResponse.in(toHandler, buffer);
        if (held != null) {
            held.deliverTo(target, toHandler);
        }
        dispatch(chain, ofHandler, toHandler);
    }

    private void dispatch(FilterChain chain, ServletRequest request, ServletResponse response)
            throws IOException, ServletException {
        Runnable leave = execution.enter();
        try {
            dispatchEntered(chain, request, response);
        } finally {
            leave.run();
        }
    }

    private void dispatchEntered(FilterChain chain, ServletRequest request, ServletResponse response)
            throws IOException, ServletException {
        enter();
        boolean complete;
        try {
            try {
                chain.doFilter(request, response);
            } finally {
                complete = leave();
            }
        } catch (Throwable e) {
            if (hasResponseDespite(e)) {
                return;
            }
            throw e;
        }
        if (complete) {
            finish();
            container().getAsyncContext().complete();
        } else if (!asyncStarted()) {
            if (container().isAsyncStarted()) {
                adopt();
            } else {
                finish();
            }
        }
    }

    /** Ends the execution of a handler that failed. Whether its caller has a response all the same. */
    private boolean hasResponseDespite(Throwable thrown) {
        try {
            if (hasResponded()) {
                // The handler was done when something behind it failed. A container would drop the response for it.
                LOG.error("An exception after the handler had closed its response, which is kept", thrown);
                finish();
                return true;
            }
            FormRules.MalformedFormException malformed = malformedForm(thrown);
            if (malformed != null && !asyncStarted() && !response.isCommitted()) {
                // What the container would have responded, had it parsed the form.
                response.sendError(malformed.status());
                finish();
                return true;
            }
            return failed(thrown);
        } catch (Throwable e) {
            // The container has recycled the response, say.
            endUnseen();
            thrown.addSuppressed(e);
            return false;
        }
    }

    private static FormRules.@Nullable MalformedFormException malformedForm(Throwable thrown) {
        for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
            if (cause instanceof FormRules.MalformedFormException malformed) {
                return malformed;
            }
        }
        return null;
    }

    /** A filter in front started asynchronous processing past this exchange: all it can do is to watch. */
    private void adopt() {
        try {
            buffer.stopHolding();
            container().getAsyncContext().addListener(new Ending());
        } catch (Throwable e) {
            endUnseen();
            throw e;
        }
    }

    /** A handler may complete and go on writing: a container ends the response only when the dispatch returns. */
    synchronized boolean completesAfterDispatch() {
        completing |= dispatching;
        return dispatching;
    }

    private synchronized void enter() {
        dispatching = true;
        completing = false;
        asyncStarted = false;
    }

    /** Whether the handler has completed its asynchronous processing in this dispatch. */
    private boolean leave() {
        List<Runnable> tasks;
        boolean complete;
        synchronized (this) {
            dispatching = false;
            complete = completing;
            tasks = List.copyOf(afterDispatch);
            afterDispatch.clear();
        }
        start(tasks);
        return complete;
    }

    private synchronized boolean asyncStarted() {
        return asyncStarted;
    }

    private synchronized @Nullable HeldAsyncContext startedContext() {
        return asyncContext;
    }

    /** Runs the listener of a non-blocking stream as a container would: on its own thread, after the dispatch. */
    void whenDispatched(Runnable task) {
        synchronized (this) {
            if (dispatching) {
                afterDispatch.add(task);
                return;
            }
        }
        start(List.of(task));
    }

    private void start(List<Runnable> tasks) {
        if (!tasks.isEmpty()) {
            container().getAsyncContext().start(entered(() -> tasks.forEach(Runnable::run)));
        }
    }

    /** A task of the handler that the container runs on a thread of its own. */
    Runnable entered(Runnable task) {
        return () -> {
            Runnable leave = execution.enter();
            try {
                task.run();
            } finally {
                leave.run();
            }
        };
    }

    /** The request as the filters in front have it in this dispatch. */
    HttpServletRequest container() {
        return request.container();
    }

    /** Whether the container has ended the response of a handler that may still be running. */
    boolean gaveUp() {
        return gaveUp;
    }

    // ---- asynchronous processing

    /** The container chooses the request and response that go on, as if this exchange were not there. */
    AsyncContext startAsync() {
        if (seesDispatches || HeldResponse.isOfUndertow(response.target())) {
            AsyncContext container = container().startAsync();
            ServletRequest chosen = container.getRequest();
            ServletResponse to = container.getResponse();
            return HeldResponse.in(to, buffer) != null
                    // Undertow chooses what the last filter has handed on.
                    ? started(new HeldAsyncContext(container, this, chosen, to, false, isOriginal(chosen, to)))
                    : started(new HeldAsyncContext(container, this, held(chosen), held(to), false, true));
        }
        // Whatever is dispatched comes by only within what the container is given.
        HeldRequest chosen = held(Wrappers.innermost(container()));
        HeldResponse to = held(Wrappers.innermost(response.target()));
        return started(new HeldAsyncContext(container().startAsync(chosen, to), this, chosen, to, false, true));
    }

    private HeldRequest held(ServletRequest ofContainer) {
        return ofContainer == container() ? request : new HeldRequest((HttpServletRequest) ofContainer, body, this);
    }

    private HeldResponse held(ServletResponse ofContainer) {
        return ofContainer == response.target()
                ? response
                : new HeldResponse((HttpServletResponse) ofContainer, buffer);
    }

    /** The container gets the response that has arrived here, and {@link #asyncDispatch} gives the handler its own again. */
    AsyncContext startAsync(ServletRequest ofHandler, ServletResponse toHandler) {
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

    /** Whether both would be the container's own without this exchange. */
    private boolean isOriginal(ServletRequest ofHandler, ServletResponse toHandler) {
        return ofHandler == request
                && toHandler == response
                && container() == Wrappers.innermost(container())
                && response.target() == Wrappers.innermost(response.target());
    }

    private HeldAsyncContext started(HeldAsyncContext context) {
        context.watch(new Ending());
        synchronized (this) {
            asyncStarted = true;
            asyncContext = context;
        }
        return context;
    }

    AsyncContext asyncContext() {
        HeldAsyncContext started = startedContext();
        AsyncContext container = container().getAsyncContext();
        return started != null ? started : new HeldAsyncContext(container, this, request, response, false, true);
    }

    /** A dispatch this filter will not see must not find its response held back. */
    void beforeDispatch() {
        if (!seesDispatches) {
            buffer.stopHolding();
            if (!Wrappers.isSureToBeDelivered(response.target())) {
                buffer.mayBeEncodedInFront();
            }
        }
    }

    /**
     * Ends asynchronous processing whose response could not be given, or only in part. To complete it would make that look whole, and only
     * whoever throws in a dispatch makes a container cut it.
     */
    void abort(AsyncContext container, Throwable why) {
        if (!seesDispatches) {
            if (container.getTimeout() <= 0) {
                // No timeout of the container ends it, and an end that looks whole is better than none.
                container.complete();
            }
            return;
        }
        notGiven = why;
        try {
            container.dispatch();
        } catch (IllegalStateException e) {
            LOG.debug("The container has ended the response already", e);
        }
    }

    private final class Ending implements AsyncListener {
        @Override
        public void onTimeout(AsyncEvent event) {
            gaveUp = true;
        }

        @Override
        public void onComplete(AsyncEvent event) {
            if (buffer.passesThrough() && (!gaveUp || buffer.isWhole())) {
                finish();
            } else {
                // The container gave up waiting, or its dispatch failed: the work may still be running somewhere.
                endUnseen();
            }
            dispatchesEnded();
        }

        @Override
        public void onError(AsyncEvent event) {
            // The client is gone, or a dispatch failed. onComplete follows; the work may still be running.
            gaveUp = true;
        }

        @Override
        public void onStartAsync(AsyncEvent event) {
            // started() above has added a listener of its own
        }
    }

    // ---- the end

    /** Records the handler's response, then lets it go. The first call counts. */
    void finish() {
        if (!ended.compareAndSet(false, true)) {
            return;
        }
        Verdict byPolicy = Verdict.UNKNOWN;
        try {
            DeferredResponse deferred = buffer.deferred();
            byPolicy = byPolicy(deferred);
            if (deferred instanceof DeferredResponse.Failure) {
                body.keepForm(container());
            }
            if (!gave(finish(byPolicy, deferred), buffer, response.target())) {
                buffer.deliver();
            }
        } catch (Throwable e) {
            // The container has recycled the response, say, perhaps before its status was read. An ended execution must
            // not
            // stay claimed.
            execution.finish(byPolicy, StoredResponse.unavailable());
            throw e;
        } finally {
            letGo();
            content.close();
        }
    }

    /** The filters in front return before an error page begins, and nobody says whether one will. */
    private void letGo() {
        if (awaitsErrorPage && seesRequestEnds) {
            execution.settleSoon();
        } else {
            execution.settle();
        }
    }

    /** The container begins another dispatch of the request; in Jetty, it has ended the one before. */
    void dispatchBegins() {
        if (awaitsErrorPage) {
            execution.hold();
            execution.settleSoon();
        }
    }

    /** The container has ended the request, in Jetty its dispatch: what is recorded is final unless {@link #dispatchBegins}. */
    void dispatchesEnded() {
        if (awaitsErrorPage) {
            execution.settle();
        }
    }

    /** Ends an execution whose handler may still be running where this exchange cannot see it. */
    private void endUnseen() {
        if (ended.compareAndSet(false, true)) {
            execution.finish(Verdict.UNKNOWN, StoredResponse.unavailable());
        }
        content.close();
    }

    private Verdict byPolicy(@Nullable DeferredResponse deferred) {
        int status = deferred instanceof DeferredResponse.Failure failure ? failure.status() : response.getStatus();
        Verdict byPolicy = execution.byStatus(status);
        // The container responded for a handler that has not: its work may still be running.
        return gaveUp && byPolicy == Verdict.RELEASE ? Verdict.UNKNOWN : byPolicy;
    }

    private Optional<Decision> finish(Verdict byPolicy, @Nullable DeferredResponse deferred) {
        if (execution.verdict(byPolicy) != Verdict.KEEP) {
            return execution.finish(byPolicy, StoredResponse.unavailable());
        }
        if (deferred instanceof DeferredResponse.Failure failure) {
            return finishWithError(byPolicy, failure.status(), failure.message());
        }
        return execution.finish(byPolicy, stored(deferred));
    }

    /** Records a failure. The container may render a page of the application for it, which then is what the caller sees. */
    private Optional<Decision> finishWithError(Verdict byPolicy, int status, @Nullable String message) {
        headers.atError(response.target());
        byte[] text = message == null ? new byte[0] : message.getBytes(StandardCharsets.UTF_8);
        byte[] error = new StoredResponse(StoredResponse.Form.ERROR, status, buffer.keptHeaders(), text).toBytes();
        Optional<Decision> instead = execution.finishProvisionally(byPolicy, error);
        awaitsErrorPage = instead.isEmpty();
        return instead;
    }

    private boolean mayStillRun() {
        return gaveUp || asyncStarted();
    }

    private boolean hasBegunAKeptResponse() {
        return buffer.hasBegunAResponse() && execution.policy().ofStatus(response.getStatus()) == Verdict.KEEP;
    }

    private boolean hasResponded() {
        return !mayStillRun() && buffer.isWhole() && hasBegunAKeptResponse();
    }

    /** Whether the caller has its response all the same: that of the owner that overtook this one. */
    private boolean failed(Throwable exception) {
        if (!ended.compareAndSet(false, true)) {
            return false;
        }
        try {
            body.keepForm(container());
            return endedInsteadOf(exception);
        } catch (Throwable e) {
            // The container has recycled the response, say. An ended execution must not stay claimed.
            execution.finish(Verdict.UNKNOWN, StoredResponse.unavailable());
            exception.addSuppressed(e);
            return false;
        } finally {
            letGo();
            content.close();
        }
    }

    private boolean endedInsteadOf(Throwable exception) {
        boolean stillRuns = mayStillRun();
        Verdict byPolicy = stillRuns || hasBegunAKeptResponse() ? Verdict.UNKNOWN : execution.byException(exception);
        Optional<Decision> instead = execution.verdict(byPolicy) == Verdict.KEEP
                ? finishWithError(byPolicy, HttpServletResponse.SC_INTERNAL_SERVER_ERROR, null)
                : execution.finish(byPolicy, StoredResponse.unavailable());
        boolean gave = !stillRuns && gave(instead, buffer, response.target());
        if (gave) {
            LOG.warn(
                    "The handler of a late owner failed; its caller gets what the owner that took over has recorded",
                    exception);
        }
        return gave;
    }

    private boolean awaitsErrorPage() {
        if (buffer.passesThrough() && buffer.deferred() instanceof DeferredResponse.Failure) {
            // Sent in a dispatch that this filter does not see.
            finish();
        }
        return awaitsErrorPage;
    }

    /** Runs the application's error page in an ERROR dispatch, and records it in place of the error if that was recorded. */
    private void errorPage(FilterChain chain, HttpServletRequest arrived, HttpServletResponse response)
            throws IOException, ServletException {
        HttpServletRequest request = HeldRequest.ofErrorPage(arrived, body);
        if (!awaitsErrorPage()) {
            chain.doFilter(request, response);
            return;
        }
        awaitsErrorPage = false;
        execution.hold();
        try {
            renderErrorPage(chain, request, response);
        } finally {
            execution.settle();
        }
    }

    private void renderErrorPage(FilterChain chain, HttpServletRequest request, HttpServletResponse response)
            throws IOException, ServletException {
        headers.atErrorPage(response);
        try (MemoryBudget.Share memory = content.memory().another()) {
            ResponseBuffer page = newBuffer(memory);
            // Undertow has the page written to what the last dispatch was given.
            HeldResponse ended = HeldResponse.in(response, buffer);
            HttpServletResponse target = ended == null ? response : ended.target();
            HeldResponse held = page.response(target);
            // Tomcat calls a dispatch asynchronous in which the handler has completed.
            boolean asyncBefore = request.isAsyncStarted();
            chain.doFilter(request, held);
            Optional<Decision> instead = Optional.empty();
            if (page.deferred() == null && (asyncBefore || !request.isAsyncStarted())) {
                instead = execution.replace(written(page, held.getStatus()));
            } else if (page.deferred() == null) {
                // The page comes later, past this filter: the error itself stays recorded.
                page.stopHolding();
            }
            if (!gave(instead, page, target)) {
                page.deliver();
            }
        }
    }

    // ---- what is recorded

    private byte[] stored(@Nullable DeferredResponse deferred) {
        if (deferred instanceof DeferredResponse.Redirect redirect) {
            String location = buffer.sessionIds().removedFrom(redirect.location());
            StoredResponse.Form form = location.equals(redirect.location())
                    ? StoredResponse.Form.REDIRECT
                    : StoredResponse.Form.ENCODED_REDIRECT;
            List<StoredResponse.Header> kept = new ArrayList<>(keptHeaders(buffer));
            kept.removeIf(header -> header.name().equals("Location"));
            kept.add(new StoredResponse.Header("Location", location));
            return new StoredResponse(
                            form, redirect.status(), kept, buffer.sessionIds().removedFrom(buffer.body()))
                    .toBytes();
        }
        return written(buffer, response.getStatus());
    }

    private byte[] written(ResponseBuffer written, int status) {
        byte[] body = written.body();
        if (written.oversize()) {
            execution.oversize();
            return StoredResponse.unavailable();
        }
        if (!written.isWhatTheClientGets(body)) {
            LOG.warn("A handler declared another Content-Length than it wrote, or wrote past the response it was given;"
                    + " its response is not kept, and duplicates are refused as result-unavailable");
            return StoredResponse.unavailable();
        }
        List<StoredResponse.Header> kept = keptHeaders(written);
        if (hidesSessionIds(written, body, kept)) {
            LOG.warn(
                    "A response was compressed after a session ID had been put into a URL of it; it is not kept, and duplicates are"
                            + " refused as result-unavailable; put the filter that compresses before the idempotence filter");
            return StoredResponse.unavailable();
        }
        return new StoredResponse(
                        StoredResponse.Form.WRITTEN,
                        status,
                        kept,
                        written.sessionIds().removedFrom(body))
                .toBytes();
    }

    /** Whether the handler, or a filter behind, has encoded session IDs, so that they cannot be removed. */
    private static boolean hidesSessionIds(ResponseBuffer written, byte[] body, List<StoredResponse.Header> kept) {
        return kept.stream()
                .anyMatch(header -> header.name().equals("Content-Encoding")
                        && written.sessionIds().mayBeIn(body, header.value()));
    }

    private static List<StoredResponse.Header> keptHeaders(ResponseBuffer written) {
        return written.keptHeaders().stream()
                .map(header -> new StoredResponse.Header(
                        header.name(), written.sessionIds().removedFrom(header.value())))
                .toList();
    }

    /** Gives the caller of a late owner what the other one has recorded, or the refusal it would get now (T14). */
    private boolean gave(Optional<Decision> instead, ResponseBuffer own, HttpServletResponse target) {
        boolean possible = instead.isPresent()
                && !own.streaming()
                && (!(instead.get() instanceof Decision.Replay replay) || ReplayWriter.isPossible(replay.result()));
        if (possible) {
            own.discard();
            try {
                if (instead.get() instanceof Decision.Replay replay) {
                    ReplayWriter.give(replay.result(), target);
                } else if (instead.get() instanceof Decision.Refuse refuse) {
                    problems.refuse(target, refuse.refusal(), refuse.retryAfter(), null);
                }
            } catch (IOException | CorruptRecordException e) {
                LOG.warn("A late owner's caller could not be given the response of the owner that took over", e);
            }
        }
        return possible;
    }
}
