package io.idempotence.server.servlet;

import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletRequestWrapper;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.ServletResponseWrapper;
import java.util.Set;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** Functions that find the container's own requests and responses inside the wrappers of filters. */
final class Wrappers {
    /** Wrappers that override how bodies are written, and work over an ASYNC dispatch. */
    private static final Set<String> WELL_BEHAVED = Set.of(
            "org.springframework.security.web.util.OnCommittedResponseWrapper",
            "org.springframework.session.web.http.OnCommittedResponseWrapper",
            "org.springframework.web.filter.ShallowEtagHeaderFilter$ConditionalContentCachingResponseWrapper");

    private Wrappers() {}

    /** The container's own request. */
    static ServletRequest innermost(ServletRequest request) {
        ServletRequest current = request;
        while (current instanceof ServletRequestWrapper wrapper) {
            current = wrapper.getRequest();
        }
        return current;
    }

    /** The container's own response. */
    static ServletResponse innermost(ServletResponse response) {
        ServletResponse current = response;
        while (current instanceof ServletResponseWrapper wrapper) {
            current = wrapper.getResponse();
        }
        return current;
    }

    static boolean isOfTomcat(ServletResponse response) {
        return isOf("org.apache.catalina.", response);
    }

    static boolean isOfJetty(ServletResponse response) {
        return isOf("org.eclipse.jetty.", response);
    }

    static boolean isOfUndertow(ServletResponse response) {
        return isOf("io.undertow.servlet.", response);
    }

    private static boolean isOf(String container, ServletResponse response) {
        return innermost(response).getClass().getName().startsWith(container);
    }

    /** The outermost response that presents refusals in a form of its own; null if there is none. */
    static @Nullable RefusalWriter refusalWriter(ServletResponse response) {
        return (RefusalWriter) find(response, RefusalWriter.class::isInstance);
    }

    /** The outermost of a request and those that it wraps that passes a test; null if none does. */
    static @Nullable ServletRequest find(ServletRequest request, Predicate<ServletRequest> test) {
        ServletRequest current = request;
        while (!test.test(current)) {
            if (!(current instanceof ServletRequestWrapper wrapper)) {
                return null;
            }
            current = wrapper.getRequest();
        }
        return current;
    }

    /** The outermost of a response and those that it wraps that passes a test; null if none does. */
    static @Nullable ServletResponse find(ServletResponse response, Predicate<ServletResponse> test) {
        ServletResponse current = response;
        while (!test.test(current)) {
            if (!(current instanceof ServletResponseWrapper wrapper)) {
                return null;
            }
            current = wrapper.getResponse();
        }
        return current;
    }

    /** Whether what is written in an ASYNC dispatch reaches the container, whatever the filters in front do. */
    static boolean isSureToBeDelivered(ServletResponse response) {
        return !mayChangeBodies(response);
    }

    /** Whether a filter in front may hold a body back or change its length. */
    static boolean mayChangeBodies(ServletResponse response) {
        return any(response, wrapper -> writesBodiesItself(wrapper) && !isWellBehaved(wrapper));
    }

    /** Whether a wrapper overrides how bodies are written. One that overrides neither method cannot hold a body back. */
    private static boolean writesBodiesItself(Class<?> wrapper) {
        return overrides(wrapper, "getOutputStream") || overrides(wrapper, "getWriter");
    }

    /** Whether a filter in front sees text that is written with the writer. */
    static boolean overrideWriter(ServletResponse response) {
        return any(response, wrapper -> overrides(wrapper, "getWriter"));
    }

    /** Whether a filter in front sees only what is written with the writer, and misses what is written to the stream. */
    static boolean overrideOnlyWriter(ServletResponse response) {
        return any(response, wrapper -> overrides(wrapper, "getWriter") && !overrides(wrapper, "getOutputStream"));
    }

    private static boolean any(ServletResponse response, Predicate<Class<?>> test) {
        return find(
                        response,
                        current -> current instanceof ServletResponseWrapper wrapper && test.test(wrapper.getClass()))
                != null;
    }

    /** Whether a filter in front serves the body itself, perhaps because it has read it. */
    static boolean serveBody(ServletRequest request) {
        return find(
                        request,
                        current -> current instanceof ServletRequestWrapper wrapper
                                && overrides(wrapper.getClass(), "getInputStream"))
                != null;
    }

    private static boolean overrides(Class<?> wrapper, String method) {
        try {
            Class<?> declaring = wrapper.getMethod(method).getDeclaringClass();
            return declaring != ServletRequestWrapper.class && declaring != ServletResponseWrapper.class;
        } catch (NoSuchMethodException e) {
            throw new IllegalStateException("no wrapper lacks the method " + method, e);
        }
    }

    private static boolean isWellBehaved(Class<?> wrapper) {
        for (Class<?> type = wrapper; type != null; type = type.getSuperclass()) {
            if (WELL_BEHAVED.contains(type.getName())) {
                return true;
            }
        }
        return false;
    }
}
