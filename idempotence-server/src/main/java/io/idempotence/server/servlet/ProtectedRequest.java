package io.idempotence.server.servlet;

import io.idempotence.server.ClaimedExecution;
import io.idempotence.server.IdempotencePolicy.Verdict;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletRequestEvent;
import jakarta.servlet.ServletRequestListener;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import org.jspecify.annotations.Nullable;

/**
 * A request that holds a claim, from its first dispatch to the end of its last one.
 *
 * <p>It ends exactly once: when the handler returns, when it throws, when it completes its asynchronous processing, or when the container
 * gives that up. The execution is then recorded, and only after that its response leaves.
 *
 * <p>In every dispatch, the filters in front wrap the container's request and response, the wrappers of this filter come next, and the
 * filters behind it and the handler get the same objects as before. So a filter on either side finds its own wrapper again.
 */
final class ProtectedRequest {
    private static final String ATTRIBUTE = ProtectedRequest.class.getName();

    private final ClaimedExecution execution;
    private final FilterConfiguration config;
    private final Dispatches dispatches;
    private final AsyncProcessing async;
    private final ExecutionEnd end;

    private ProtectedRequest(
            ClaimedExecution execution,
            FilterConfiguration config,
            Dispatches dispatches,
            AsyncProcessing async,
            ExecutionEnd end) {
        this.execution = execution;
        this.config = config;
        this.dispatches = dispatches;
        this.async = async;
        this.end = end;
    }

    /** Starts the protected request, and puts it into an attribute of {@code request}, where later dispatches find it. */
    static ProtectedRequest begin(
            ClaimedExecution execution,
            FilterParts filter,
            HttpServletRequest request,
            RequestContent content,
            HttpServletResponse response) {
        Dispatches dispatches = new Dispatches(execution, request);
        HeldBody body = new HeldBody(content, filter.config().formLimits(), dispatches);
        ExecutionEnd end = new ExecutionEnd(execution, filter, dispatches, body, response);
        AsyncProcessing async =
                new AsyncProcessing(dispatches, end, filter.seesDispatches(), request, body, filter.bypassWarning());
        ProtectedRequest begun = new ProtectedRequest(execution, filter.config(), dispatches, async, end);
        ProtectedRequest before = of(request);
        if (before != null) {
            // The container announces the end of the latest one only.
            before.end.dispatchEnded();
        }
        try {
            request.setAttribute(ATTRIBUTE, begun);
        } catch (Throwable e) {
            // Perhaps a listener of the application threw. The attribute is set, so it must show that the request has
            // ended.
            end.withoutResponse(Verdict.RELEASE);
            throw e;
        }
        return begun;
    }

    /** Returns the protected request that {@code request} belongs to; null if it is not protected. */
    static @Nullable ProtectedRequest of(ServletRequest request) {
        return request.getAttribute(ATTRIBUTE) instanceof ProtectedRequest begun ? begun : null;
    }

    @SuppressWarnings("ReferenceEquality") // Two filters may have equal configurations.
    boolean isOf(FilterConfiguration filter) {
        return config == filter;
    }

    /** Whether a filter in front has proceeded once more after this request had ended. It then needs a claim of its own. */
    boolean isRepeatedBy(HttpServletRequest arrived) {
        return arrived.getDispatcherType() == DispatcherType.REQUEST && end.hasEnded();
    }

    ClaimedExecution execution() {
        return execution;
    }

    /** Runs the handler in the dispatch in which this request became protected. */
    void firstDispatch(FilterChain chain) throws IOException, ServletException {
        dispatch(chain, async.request(), end.response(), Verdict.RELEASE);
    }

    void laterDispatch(FilterChain chain, HttpServletRequest arrived, HttpServletResponse target)
            throws IOException, ServletException {
        if (arrived.getDispatcherType() == DispatcherType.ASYNC) {
            AsyncProcessing.ForHandler given = async.inDispatch(arrived, target);
            dispatch(chain, given.request(), given.response(), Verdict.UNKNOWN);
        } else if (arrived.getDispatcherType() == DispatcherType.ERROR || end.isForwardedErrorPage(arrived)) {
            end.errorPage(chain, arrived, target);
        } else {
            chain.doFilter(arrived, target);
        }
    }

    /** Notifies a protected request when another dispatch begins, and when its request or dispatch has ended. */
    static final class Ends implements ServletRequestListener {
        /** In Jetty, the previous dispatch has ended. */
        @Override
        public void requestInitialized(ServletRequestEvent event) {
            ProtectedRequest begun = of(event.getServletRequest());
            if (begun != null) {
                begun.end.errorPageMayBegin();
            }
        }

        /** The container has ended the request, in Jetty the dispatch. */
        @Override
        public void requestDestroyed(ServletRequestEvent event) {
            ProtectedRequest ended = of(event.getServletRequest());
            if (ended != null) {
                ended.end.dispatchEnded();
            }
        }
    }

    /** @param ifNotBegun the verdict if this dispatch cannot begin */
    private void dispatch(FilterChain chain, ServletRequest request, ServletResponse response, Verdict ifNotBegun)
            throws IOException, ServletException {
        Runnable leave;
        try {
            dispatches.enter(async.request().container());
            leave = execution.enter();
        } catch (Throwable e) {
            // Perhaps memory ran out. Nothing else would end the execution.
            end.withoutResponse(ifNotBegun);
            throw e;
        }
        try {
            dispatchEntered(chain, request, response);
        } finally {
            leave.run();
        }
    }

    private void dispatchEntered(FilterChain chain, ServletRequest request, ServletResponse response)
            throws IOException, ServletException {
        HttpServletRequest container = dispatches.container();
        boolean complete;
        try {
            Runnable leaveAttempt = execution.enterAttempt();
            try {
                chain.doFilter(request, response);
            } finally {
                leaveAttempt.run();
                complete = dispatches.leave();
            }
        } catch (Throwable e) {
            if (end.hasResponseDespite(e)) {
                return;
            }
            throw e;
        }
        if (complete) {
            end.finish();
            container.getAsyncContext().complete();
        } else if (!dispatches.asyncStarted()) {
            if (container.isAsyncStarted()) {
                async.adopt();
            } else {
                end.finish();
            }
        }
    }
}
