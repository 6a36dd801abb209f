package io.idempotence.server.servlet;

import io.idempotence.server.Decision;
import io.idempotence.server.Execution;
import io.idempotence.server.StoredResponse;
import io.idempotence.server.Verdict;
import io.idempotence.server.storage.CorruptRecordException;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
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
 * gives that up. Then the execution is recorded, and only then the answer leaves.
 */
final class Exchange {
    private static final Logger LOG = LoggerFactory.getLogger(Exchange.class);

    /**
     * How long an error page may take to come by. The container renders it after this filter has returned, and not every application has
     * one; until then later attempts are told that the first one still runs.
     */
    private final Execution execution;

    private final FilterConfiguration config;
    private final Problems problems;
    private final boolean seesDispatches;
    private final HttpServletRequest containerRequest;
    private final HttpServletResponse containerResponse;
    private final HeldRequest request;
    private final HeldResponse response;
    private final HttpServletResponse responseForHandler;

    private final HandlerHeaders headers;

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

    Exchange(
            Execution execution,
            FilterConfiguration config,
            Problems problems,
            boolean seesDispatches,
            HttpServletRequest request,
            byte @Nullable [] body,
            HttpServletResponse response) {
        this.execution = execution;
        this.config = config;
        this.problems = problems;
        this.seesDispatches = seesDispatches;
        this.containerRequest = request;
        this.containerResponse = response;
        this.request = new HeldRequest(request, body, this);
        this.headers = new HandlerHeaders(config.keptHeaders());
        this.response = new HeldResponse(response, config.maxResponseBody(), headers, this);
        this.responseForHandler = this.response.forHandler();
    }

    boolean isOf(FilterConfiguration filter) {
        return config == filter;
    }

    Execution execution() {
        return execution;
    }

    HeldRequest request() {
        return request;
    }

    HttpServletResponse responseForHandler() {
        return responseForHandler;
    }

    // ---- dispatches

    /** Runs the handler in a REQUEST or ASYNC dispatch, entered in this thread. */
    void dispatch(FilterChain chain, ServletRequest request, ServletResponse response)
            throws IOException, ServletException {
        if (notGiven != null) {
            throw new ServletException("the container, or a filter in front, did not take an answer", notGiven);
        }
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
            if (hasAnswered()) {
                // The handler was done when something behind it failed. A container would drop the answer for it.
                LOG.error("an exception after the handler had given its whole answer, which stands", e);
                finish();
                return;
            }
            if (failed(e)) {
                LOG.warn("the handler of a late owner failed; its caller is told what became of the other one", e);
                return;
            }
            throw e;
        }
        if (complete) {
            finish();
            containerRequest.getAsyncContext().complete();
        } else if (!asyncStarted()) {
            if (containerRequest.isAsyncStarted()) {
                adopt();
            } else {
                finish();
            }
        }
    }

    /** A filter in front started asynchronous processing past this exchange: all it can do is to watch. */
    private void adopt() {
        response.stopHolding();
        containerRequest.getAsyncContext().addListener(new Ending());
    }

    /** A handler may complete and go on writing: a container ends the answer only when the dispatch returns. */
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
            containerRequest.getAsyncContext().start(entered(() -> tasks.forEach(Runnable::run)));
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

    // ---- asynchronous processing

    AsyncContext startAsync(ServletRequest request, ServletResponse response) {
        AsyncContext container = containerRequest.startAsync(request, response);
        container.addListener(new Ending());
        HeldAsyncContext held = new HeldAsyncContext(container, this);
        synchronized (this) {
            asyncStarted = true;
            asyncContext = held;
        }
        return held;
    }

    synchronized AsyncContext asyncContext(AsyncContext container) {
        return asyncContext != null ? asyncContext : new HeldAsyncContext(container, this);
    }

    /** A dispatch this filter will not see must not find its answer held back for ever. */
    void beforeDispatch() {
        if (!seesDispatches) {
            response.stopHolding();
        }
    }

    /**
     * Ends asynchronous processing whose answer could not be given, or only in part. To complete it would make that look whole, and only
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
            LOG.debug("the container has ended the answer already", e);
        }
    }

    private final class Ending implements AsyncListener {
        @Override
        public void onTimeout(AsyncEvent event) {
            gaveUp = true;
        }

        @Override
        public void onComplete(AsyncEvent event) {
            if (response.passesThrough() && (!gaveUp || response.isWhole())) {
                finish();
            } else if (ended.compareAndSet(false, true)) {
                // The container gave up waiting, or its dispatch failed: the work may still be running somewhere.
                execution.finish(Verdict.UNKNOWN, StoredResponse.unavailable());
            }
        }

        @Override
        public void onError(AsyncEvent event) {
            // The client is gone, or a dispatch failed. onComplete follows; the work may still be running.
            gaveUp = true;
        }

        @Override
        public void onStartAsync(AsyncEvent event) {
            // startAsync() above has added a listener of its own
        }
    }

    // ---- the end

    /** Records the handler's answer, then lets it go. The first call counts. */
    void finish() {
        if (!ended.compareAndSet(false, true)) {
            return;
        }
        try {
            end();
        } catch (Throwable e) {
            // Nothing may leave an ended execution claimed for ever. What the handler did is done.
            execution.finish(Verdict.KEEP, StoredResponse.unavailable());
            throw e;
        }
    }

    private void end() {
        HeldResponse.Deferred deferred = response.deferred();
        int status =
                deferred instanceof HeldResponse.Deferred.Failure failure ? failure.status() : response.getStatus();
        Verdict byPolicy = execution.byStatus(status);
        if (gaveUp && byPolicy == Verdict.RELEASE) {
            // The container answered for a handler that has not: its work may still be running.
            byPolicy = Verdict.UNKNOWN;
        }
        if (deferred instanceof HeldResponse.Deferred.Failure failure && execution.verdict(byPolicy) == Verdict.KEEP) {
            if (!gaveInsteadOfErrorPage(byPolicy, failure.status(), failure.message())) {
                response.deliver();
            }
            return;
        }
        byte[] result = execution.verdict(byPolicy) == Verdict.KEEP ? stored(deferred) : StoredResponse.unavailable();
        if (!gave(execution.finish(byPolicy, result))) {
            response.deliver();
        }
    }

    /** Whether the container has ended the answer of a handler that may still be running. */
    boolean gaveUp() {
        return gaveUp;
    }

    private boolean mayStillRun() {
        return gaveUp || asyncStarted();
    }

    private boolean hasBegunAKeptAnswer() {
        return response.hasBegunAnAnswer() && execution.policy().ofStatus(response.getStatus()) == Verdict.KEEP;
    }

    private boolean hasAnswered() {
        return !mayStillRun() && response.isWhole() && hasBegunAKeptAnswer();
    }

    /** Whether the caller has its answer all the same: that of the owner that overtook this one. */
    private boolean failed(Throwable exception) {
        if (!ended.compareAndSet(false, true)) {
            return false;
        }
        Verdict byPolicy = mayStillRun() || hasBegunAKeptAnswer() ? Verdict.UNKNOWN : execution.byException(exception);
        if (execution.verdict(byPolicy) == Verdict.KEEP) {
            return gaveInsteadOfErrorPage(byPolicy, HttpServletResponse.SC_INTERNAL_SERVER_ERROR, null);
        }
        boolean stillRuns = mayStillRun();
        Optional<Decision> instead = execution.finish(byPolicy, StoredResponse.unavailable());
        return !stillRuns && gave(instead);
    }

    /** Records a failure that an error page may still change. True if the caller was given another answer instead (T14). */
    private boolean gaveInsteadOfErrorPage(Verdict byPolicy, int status, @Nullable String message) {
        headers.atError(containerResponse);
        awaitsErrorPage = !gave(execution.finishProvisionally(byPolicy, error(status, message)));
        return !awaitsErrorPage;
    }

    private byte[] error(int status, @Nullable String message) {
        byte[] text = message == null ? new byte[0] : message.getBytes(StandardCharsets.UTF_8);
        return new StoredResponse(StoredResponse.Form.ERROR, status, response.keptHeaders(), text).toBytes();
    }

    boolean awaitsErrorPage() {
        return awaitsErrorPage;
    }

    /** Runs the application's error page in an ERROR dispatch and records it as the answer (rule 11). */
    void errorPage(FilterChain chain, HttpServletRequest request, HttpServletResponse response)
            throws IOException, ServletException {
        headers.atErrorPage(response);
        HeldResponse page = new HeldResponse(response, config.maxResponseBody(), headers, this);
        chain.doFilter(request, page.forHandler());
        if (page.deferred() == null && !request.isAsyncStarted()) {
            execution.replace(written(page));
            page.deliver();
        } else {
            // No page after all: what the handler asked for is recorded.
            if (page.deferred() == null) {
                page.stopHolding();
            }
            page.deliver();
        }
    }

    // ---- what is recorded

    private byte[] stored(HeldResponse.@Nullable Deferred deferred) {
        if (deferred instanceof HeldResponse.Deferred.Redirect redirect) {
            List<StoredResponse.Header> headers = new ArrayList<>(response.keptHeaders());
            headers.removeIf(header -> header.name().equals("Location"));
            headers.add(new StoredResponse.Header("Location", redirect.location()));
            return new StoredResponse(StoredResponse.Form.REDIRECT, redirect.status(), headers, response.body())
                    .toBytes();
        }
        return written(response);
    }

    private byte[] written(HeldResponse answer) {
        byte[] body = answer.body();
        if (answer.oversize()) {
            execution.oversize();
            return StoredResponse.unavailable();
        }
        if (answer.isCutByContainer(body)) {
            LOG.warn("a handler wrote more than its Content-Length, its answer is not kept");
            return StoredResponse.unavailable();
        }
        return new StoredResponse(StoredResponse.Form.WRITTEN, answer.getStatus(), answer.keptHeaders(), body)
                .toBytes();
    }

    /** Gives the caller of a late owner what the other one answered, or the refusal it would get now (T14). */
    private boolean gave(Optional<Decision> instead) {
        boolean possible = instead.isPresent()
                && !response.streaming()
                && (!(instead.get() instanceof Decision.Replay replay) || Replay.isPossible(replay.result()));
        if (possible) {
            response.discard();
            try {
                if (instead.get() instanceof Decision.Replay replay) {
                    Replay.give(replay.result(), containerResponse);
                } else if (instead.get() instanceof Decision.Refuse refuse) {
                    problems.refuse(containerResponse, refuse.refusal(), refuse.retryAfter(), null);
                }
            } catch (IOException | CorruptRecordException e) {
                LOG.warn("a late owner could not be given the answer of the one that overtook it", e);
            }
        }
        return possible;
    }
}
