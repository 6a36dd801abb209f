package io.idempotence.server.servlet;

import io.idempotence.server.ClaimedExecution;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import org.jspecify.annotations.Nullable;

/**
 * One request that holds a claim, from its first dispatch to the end of its last one.
 *
 * <p>It ends exactly once: when the handler returns, when it throws, when it completes its asynchronous processing, or when the container
 * gives that up. Then the execution is recorded, and only then the response leaves.
 *
 * <p>In every dispatch the filters in front wrap what the container has, this request comes next, and the filters behind it and the
 * handler see what they have seen before. So whoever looks for a wrapper of its own finds it, on either side.
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

    /** Claims {@code request} for the filter: whoever sees it again finds it here. */
    static ProtectedRequest begin(
            ClaimedExecution execution,
            FilterParts filter,
            HttpServletRequest request,
            RequestContent content,
            HttpServletResponse response) {
        Dispatches dispatches = new Dispatches(execution, request);
        HeldBody body = new HeldBody(content, filter.config().formLimits(), filter.bypass(), dispatches);
        ExecutionEnd end = new ExecutionEnd(execution, filter, dispatches, body, response);
        AsyncProcessing async = new AsyncProcessing(dispatches, end, filter.seesDispatches(), request, body);
        ProtectedRequest begun = new ProtectedRequest(execution, filter.config(), dispatches, async, end);
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

    /** Runs the handler in the REQUEST dispatch that made this request a protected one. */
    void firstDispatch(FilterChain chain) throws IOException, ServletException {
        dispatch(chain, async.request(), end.response());
    }

    /** Goes on in a dispatch after the first. */
    void laterDispatch(FilterChain chain, HttpServletRequest arrived, HttpServletResponse target)
            throws IOException, ServletException {
        if (arrived.getDispatcherType() == DispatcherType.ASYNC) {
            AsyncProcessing.ForHandler given = async.inDispatch(arrived, target);
            dispatch(chain, given.request(), given.response());
        } else if (arrived.getDispatcherType() == DispatcherType.ERROR) {
            end.errorPage(chain, arrived, target);
        } else {
            chain.doFilter(arrived, target);
        }
    }

    /** The container begins another dispatch of the request; in Jetty, it has ended the one before. */
    void dispatchBegins() {
        end.errorPageMayBegin();
    }

    /** The container has ended the request, in Jetty its dispatch: what is recorded is final unless {@link #dispatchBegins}. */
    void dispatchesEnded() {
        end.noErrorPageComes();
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
        HttpServletRequest container = async.request().container();
        dispatches.enter(container);
        boolean complete;
        try {
            try {
                chain.doFilter(request, response);
            } finally {
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
