package io.idempotence.spring.method;

import io.idempotence.server.ClaimedExecution;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import org.springframework.web.context.request.NativeWebRequest;
import org.springframework.web.context.request.async.CallableProcessingInterceptor;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.context.request.async.DeferredResultProcessingInterceptor;
import org.springframework.web.context.request.async.WebAsyncManager;
import org.springframework.web.context.request.async.WebAsyncUtils;
import org.springframework.web.servlet.HandlerInterceptor;

/**
 * The executions of asynchronous requests. Carries an execution to the thread on which Spring MVC runs a {@code Callable}, {@code
 * WebAsyncTask} or {@code StreamingResponseBody}. When such a request ends, or one with a future or {@code DeferredResult}, a commit on any
 * thread without an execution counts as its effect. Thread-safe.
 */
final class AsyncExecutions implements HandlerInterceptor {
    private final UnattributedCommits commits;

    AsyncExecutions(UnattributedCommits commits) {
        this.commits = commits;
    }

    /**
     * Joins the asynchronous processing of a request, whatever kind its handler is of, and whoever configures Spring MVC. Also called for
     * the dispatch with the result, which begins nothing.
     */
    @Override
    public boolean preHandle(HttpServletRequest request, HttpServletResponse response, Object handler) {
        if (IdempotenceFilter.execution(request).orElse(null) instanceof ClaimedExecution execution) {
            WebAsyncManager processing = WebAsyncUtils.getAsyncManager(request);
            if (processing.getCallableInterceptor(this) == null) {
                OfRequest joined = new OfRequest(execution, commits);
                processing.registerCallableInterceptor(this, joined);
                processing.registerDeferredResultInterceptor(this, joined);
            }
        }
        return true;
    }

    /** The asynchronous processing of one request. */
    private static final class OfRequest implements CallableProcessingInterceptor, DeferredResultProcessingInterceptor {
        private final ClaimedExecution execution;
        private final UnattributedCommits commits;
        /** How many commits had ended before the handler began. */
        private final long before;

        /** A request that timed out may have a second task, for its error page, while the first one still runs. */
        private final ThreadLocal<@Nullable Runnable> leave = new ThreadLocal<>();

        OfRequest(ClaimedExecution execution, UnattributedCommits commits) {
            this.execution = execution;
            this.commits = commits;
            this.before = commits.ended();
        }

        private void declareEffect() {
            if (commits.anySince(before)) {
                execution.tookEffect();
            }
        }

        @Override
        public <T> void postProcess(NativeWebRequest request, DeferredResult<T> deferred, @Nullable Object result) {
            declareEffect();
        }

        // ---- the thread of a Callable

        @Override
        public <T> void preProcess(NativeWebRequest request, Callable<T> task) {
            Runnable leaveExecution = execution.enter();
            Runnable leaveAttempt = execution.enterAttempt();
            leave.set(() -> {
                leaveAttempt.run();
                leaveExecution.run();
            });
        }

        @Override
        public <T> void postProcess(NativeWebRequest request, Callable<T> task, @Nullable Object result) {
            declareEffect();
            Runnable entered = leave.get();
            if (entered != null) {
                leave.remove();
                entered.run();
            }
        }
    }
}
