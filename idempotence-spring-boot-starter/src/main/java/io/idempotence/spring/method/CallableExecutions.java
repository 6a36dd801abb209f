package io.idempotence.spring.method;

import io.idempotence.server.ClaimedExecution;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.http.HttpServletRequest;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import org.springframework.web.context.request.NativeWebRequest;
import org.springframework.web.context.request.async.CallableProcessingInterceptor;
import org.springframework.web.servlet.config.annotation.AsyncSupportConfigurer;
import org.springframework.web.servlet.config.annotation.WebMvcConfigurer;

/**
 * Carries a request's execution to the thread on which Spring MVC runs a {@code Callable}, {@code WebAsyncTask} or {@code
 * StreamingResponseBody}. Thread-safe.
 */
final class CallableExecutions implements WebMvcConfigurer, CallableProcessingInterceptor {
    private final Map<Callable<?>, ClaimedExecution> waiting = Collections.synchronizedMap(new IdentityHashMap<>());
    private final ThreadLocal<@Nullable Runnable> leave = new ThreadLocal<>();

    @Override
    public void configureAsyncSupport(AsyncSupportConfigurer configurer) {
        configurer.registerCallableInterceptors(this);
    }

    @Override
    public <T> void beforeConcurrentHandling(NativeWebRequest request, Callable<T> task) {
        HttpServletRequest servlet = request.getNativeRequest(HttpServletRequest.class);
        if (servlet != null
                && IdempotenceFilter.execution(servlet).orElse(null) instanceof ClaimedExecution execution) {
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
    public <T> void postProcess(NativeWebRequest request, Callable<T> task, @Nullable Object concurrentResult) {
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
