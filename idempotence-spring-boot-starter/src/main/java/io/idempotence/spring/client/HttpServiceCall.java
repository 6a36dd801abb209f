package io.idempotence.spring.client;

import io.idempotence.Idempotent;
import io.idempotence.client.internal.scope.ThreadBound;
import java.lang.reflect.Method;
import org.aopalliance.intercept.MethodInterceptor;
import org.jspecify.annotations.Nullable;
import org.springframework.core.annotation.AnnotatedElementUtils;

/**
 * The call of a method of an HTTP service client, which the request that it makes belongs to.
 *
 * @param method the method's name
 * @param annotated the value of {@code @Idempotent} on the method or its interface, or null if there is none
 * @param group the HTTP service group, or null if it is unknown
 */
record HttpServiceCall(
        String method,
        @Nullable Boolean annotated,
        @Nullable String group) {
    private static final ThreadBound<HttpServiceCall> CURRENT = new ThreadBound<>();

    /** The call that the next request of this thread belongs to. */
    static @Nullable HttpServiceCall current() {
        return CURRENT.get();
    }

    /** Runs a request. Requests that are made on its way, for example for a token, do not belong to the call. */
    static <T, X extends Throwable> T taken(ThreadBound.Task<T, X> request) throws X {
        return CURRENT.during(null, request);
    }

    /** Advice for the proxy of a client. */
    static MethodInterceptor advice(@Nullable String group) {
        return invocation -> {
            Method method = invocation.getMethod();
            HttpServiceCall call = new HttpServiceCall(method.getName(), annotated(method), group);
            return CURRENT.<@Nullable Object, Throwable>during(call, invocation::proceed);
        };
    }

    private static @Nullable Boolean annotated(Method method) {
        Idempotent annotation = AnnotatedElementUtils.findMergedAnnotation(method, Idempotent.class);
        if (annotation == null) {
            annotation = AnnotatedElementUtils.findMergedAnnotation(method.getDeclaringClass(), Idempotent.class);
        }
        return annotation == null ? null : annotation.value();
    }
}
