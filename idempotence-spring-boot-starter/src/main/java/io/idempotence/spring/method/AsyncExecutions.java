package io.idempotence.spring.method;

import io.idempotence.server.ClaimedExecution;
import io.idempotence.server.IdempotentExecution;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Optional;
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
final class AsyncExecutions
        implements HandlerInterceptor, CallableProcessingInterceptor, DeferredResultProcessingInterceptor {
    /** The attribute of a request with the number of commits before its handler began. */
    private static final String BEFORE = AsyncExecutions.class.getName() + ".before";

    private final UnattributedCommits commits;
    private final Map<Callable<?>, ClaimedExecution> waiting = Collections.synchronizedMap(new IdentityHashMap<>());
    private final ThreadLocal<@Nullable Runnable> leave = new ThreadLocal<>();

    AsyncExecutions(UnattributedCommits commits) {
        this.commits = commits;
    }

    private static Optional<IdempotentExecution> execution(NativeWebRequest request) {
        return Optional.ofNullable(request.getNativeRequest(HttpServletRequest.class))
                .flatMap(IdempotenceFilter::execution);
    }

    // ---- the commits during a request

    /**
     * Also called for the dispatch with the result, which begins nothing. Joins the processing of this request, whatever kind its handler is
     * of, and whoever configures Spring MVC.
     */
    @Override
    public boolean preHandle(HttpServletRequest request, HttpServletResponse response, Object handler) {
        if (request.getAttribute(BEFORE) == null
                && IdempotenceFilter.execution(request).isPresent()) {
            request.setAttribute(BEFORE, commits.ended());
            WebAsyncManager processing = WebAsyncUtils.getAsyncManager(request);
            processing.registerCallableInterceptors(this);
            processing.registerDeferredResultInterceptors(this);
        }
        return true;
    }

    private void declareEffect(NativeWebRequest request) {
        execution(request).ifPresent(execution -> {
            Object before = request.getAttribute(BEFORE, NativeWebRequest.SCOPE_REQUEST);
            if (before instanceof Long number && commits.anySince(number)) {
                execution.tookEffect();
            }
        });
    }

    @Override
    public <T> void postProcess(NativeWebRequest request, DeferredResult<T> deferred, @Nullable Object result) {
        declareEffect(request);
    }

    // ---- the thread of a Callable

    @Override
    public <T> void beforeConcurrentHandling(NativeWebRequest request, Callable<T> task) {
        if (execution(request).orElse(null) instanceof ClaimedExecution execution) {
            waiting.put(task, execution);
        }
    }

    @Override
    public <T> void preProcess(NativeWebRequest request, Callable<T> task) {
        ClaimedExecution execution = waiting.remove(task);
        if (execution != null) {
            leave.set(execution.enter());
        }
    }

    @Override
    public <T> void postProcess(NativeWebRequest request, Callable<T> task, @Nullable Object result) {
        declareEffect(request);
        Runnable entered = leave.get();
        if (entered != null) {
            leave.remove();
            entered.run();
        }
    }

    @Override
    public <T> void afterCompletion(NativeWebRequest request, Callable<T> task) {
        waiting.remove(task);
    }
}
