package io.idempotence.spring.client;

import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_KEY;

import io.idempotence.Idempotent;
import io.idempotence.client.internal.call.LayerFailures;
import io.idempotence.client.internal.http.HeaderLines;
import io.idempotence.client.internal.http.Observation;
import io.idempotence.client.internal.scope.CallerContext;
import io.idempotence.client.internal.scope.ScopeHistory;
import io.idempotence.internal.ThreadBound;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import java.util.function.UnaryOperator;
import org.aopalliance.intercept.MethodInterceptor;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpRequest;
import org.springframework.web.client.ResourceAccessException;
import org.springframework.web.client.RestClientResponseException;
import org.springframework.web.service.invoker.HttpRequestValues;

/**
 * A call of a method of an HTTP service client, to which the request that the method makes belongs. A circuit breaker between the two may
 * make the request in another thread, so the call keeps what is bound to the thread of its caller.
 */
final class HttpServiceCall {
    /** The name of the request attribute that leads from a request in another thread to its call. */
    private static final String ATTRIBUTE = "io.idempotence.http-service-call";

    private static final Logger LOG = LoggerFactory.getLogger(IdempotentRestClient.class);
    private static final ThreadBound<HttpServiceCall> CURRENT = new ThreadBound<>();

    private final String method;
    private final @Nullable Boolean annotated;
    private final @Nullable String group;
    private final CallerContext caller = CallerContext.current();
    private final List<Request> requests = new ArrayList<>(1);
    private volatile @Nullable RestCall last;

    /** The first request that ended with an unknown outcome, unless a later request under the same ID ended with a known one. */
    private volatile @Nullable RestCall unknown;

    /** How many requests of the call are in flight: a layer may hedge. */
    private final AtomicInteger running = new AtomicInteger();

    private volatile boolean marked;
    private volatile boolean intercepted;
    private volatile boolean givenUp;

    /**
     * A request of a call, and the history of its ID. Multipart bodies have another boundary each time they are encoded.
     *
     * @param id the line of the ID that the caller of the request set. The request may get another ID later
     */
    private record Request(HttpRequest request, @Nullable String id, byte[] body, ScopeHistory history) {
        Request(HttpRequest request, byte[] body) {
            this(request, request.getHeaders().getFirst(IDEMPOTENCY_KEY), body, ScopeHistory.ofOneCall());
        }

        boolean isRepeatedBy(Request other) {
            return RestCall.target(request).equals(RestCall.target(other.request))
                    && isMarked() == other.isMarked()
                    && (isMarked() || isEqualTo(other));
        }

        private boolean isEqualTo(Request other) {
            return request.getURI().equals(other.request.getURI())
                    && Objects.equals(id, other.id)
                    && ((isMultipart() && other.isMultipart()) || Arrays.equals(body, other.body));
        }

        private boolean isMarked() {
            return request.getAttributes().get(ATTRIBUTE) != null;
        }

        private boolean isMultipart() {
            String type = request.getHeaders().getFirst(HttpHeaders.CONTENT_TYPE);
            return type != null && HeaderLines.isMultipart(List.of(type));
        }
    }

    private HttpServiceCall(String method, @Nullable Boolean annotated, @Nullable String group) {
        this.method = method;
        this.annotated = annotated;
        this.group = group;
    }

    /** The call that a request belongs to, or null if no HTTP service client makes it. */
    static @Nullable HttpServiceCall of(HttpRequest request) {
        if (request.getAttributes().get(ATTRIBUTE) instanceof HttpServiceCall call) {
            return call;
        }
        HttpServiceCall current = CURRENT.get();
        return current == null || current.marked ? null : current;
    }

    /**
     * Marks the request that the call of this thread is about to make. Requests without the mark then do not belong to the call, such as
     * those of the fallback of a circuit breaker.
     */
    static void mark(HttpRequestValues.Builder request) {
        HttpServiceCall current = CURRENT.get();
        if (current != null) {
            request.addAttribute(ATTRIBUTE, current);
            current.marked = true;
        }
    }

    /** Runs a request. Requests that are made on its way, for example for a token, do not belong to the call. */
    static <T, X extends Throwable> T taken(ThreadBound.Task<T, X> request) throws X {
        return CURRENT.during(null, request);
    }

    /**
     * Advice for the proxy of a client.
     *
     * @param client its interface
     * @param group the HTTP service group, or null if it is unknown
     * @param uninstalled gets each call whose request passed no interceptor, and its value of {@code @Idempotent}
     */
    static MethodInterceptor advice(
            Class<?> client, @Nullable String group, BiConsumer<MethodInvocation, @Nullable Boolean> uninstalled) {
        AtomicBoolean warned = new AtomicBoolean();
        return invocation -> {
            Method method = invocation.getMethod();
            HttpServiceCall call = new HttpServiceCall(method.getName(), annotated(client, method), group);
            UnaryOperator<Throwable> end = thrown -> thrown instanceof Exception e ? call.endOf(e, warned) : thrown;
            try {
                Object result = LayerFailures.<@Nullable Object, Throwable>during(
                        end, () -> CURRENT.<@Nullable Object, Throwable>during(call, invocation::proceed));
                call.ended(invocation, uninstalled);
                return result;
            } catch (Exception e) {
                if (e instanceof RestClientResponseException || e instanceof ResourceAccessException) {
                    call.ended(invocation, uninstalled);
                }
                throw call.endOf(e, warned);
            } finally {
                call.giveUp();
            }
        };
    }

    /**
     * Reports a call whose request passed no interceptor. Calls of groups are not reported: Boot builds their clients, and a circuit
     * breaker around one may end a call that made no request.
     */
    private void ended(MethodInvocation invocation, BiConsumer<MethodInvocation, @Nullable Boolean> uninstalled) {
        if (!intercepted && !marked && group == null) {
            uninstalled.accept(invocation, annotated);
        }
    }

    /**
     * The value of the annotation, looked up as for Feign: of the method, else of its interface, else of the client, else of the interfaces
     * that the client extends.
     */
    private static @Nullable Boolean annotated(Class<?> client, Method method) {
        Idempotent annotation = AnnotatedElementUtils.findMergedAnnotation(method, Idempotent.class);
        if (annotation == null) {
            annotation = AnnotatedElementUtils.getMergedAnnotation(method.getDeclaringClass(), Idempotent.class);
        }
        if (annotation == null) {
            annotation = AnnotatedElementUtils.findMergedAnnotation(client, Idempotent.class);
        }
        return annotation == null ? null : annotation.value();
    }

    /**
     * Returns the exception with which the call ends, and gives the call up. A layer that gave the call up while its request was in flight
     * cannot tell the outcome of the request, which may have ended just afterwards. Neither can a layer that refuses to repeat the call, or
     * that throws an exception of its own.
     */
    private Throwable endOf(Exception thrown, AtomicBoolean warned) {
        giveUp();
        RestCall call = last;
        if (call == null) {
            return thrown;
        }
        RestCall before = unknown;
        if (before != null && !haveOneId(before, call)) {
            // The end of a later request under another ID shows nothing about this one.
            return before.logical().isUnknownIn(thrown) ? thrown : before.unknown(new Observation(), thrown);
        }
        if (call.logical().id() == null || call.logical().isUnknownIn(thrown)) {
            return thrown;
        }
        boolean gaveUp = running.get() > 0 || call.logical().isLostBy(thrown);
        boolean refusal = LayerFailures.containsRefusal(thrown);
        boolean hidesFailure = refusal && call.logical().handlerFailure() != null;
        if (!gaveUp && !hidesFailure && !call.logical().isHiddenBy(thrown, refusal)) {
            return thrown;
        }
        if (gaveUp && warned.compareAndSet(false, true)) {
            LOG.warn(
                    "A layer around the HTTP service client {} gave up {} while its request was in flight, and the call may take"
                            + " {} (idempotence.client.deadline). Its outcome is unknown. Set the time limit of that layer above the"
                            + " deadline, for example resilience4j.timelimiter.instances.{}.timeout-duration",
                    group,
                    method,
                    call.deadline(),
                    group,
                    thrown);
        }
        return call.unknown(new Observation(), thrown);
    }

    /** Gives the call up: if none of its requests was sent so far, none will be. A request may still wait for a thread, and begin only later. */
    private void giveUp() {
        givenUp = true;
        RestCall call = last;
        if (call != null) {
            call.logical().giveUp();
        }
    }

    /**
     * The history of a request's ID. If a layer inside of the client's proxy repeats the request, the repetitions have the history, and so
     * the ID, of the first one. An interceptor may make other requests before it, for example for a token.
     */
    synchronized ScopeHistory history(HttpRequest request, byte[] body) {
        Request own = new Request(request, body);
        for (Request known : requests) {
            if (known.isRepeatedBy(own)) {
                return known.history();
            }
        }
        requests.add(own);
        return own.history();
    }

    /** Records that a request of the call has reached an interceptor of this library, whether or not it carries an ID. */
    void intercepted() {
        intercepted = true;
    }

    /** Records that a request of the call runs. */
    void began(RestCall call) {
        last = call;
        running.incrementAndGet();
        if (givenUp) {
            call.logical().giveUp();
        }
    }

    /** Records that a request of the call has ended. If a layer hedges, two requests may end at once. */
    synchronized void ended(RestCall call) {
        running.decrementAndGet();
        RestCall before = unknown;
        if (before == null || haveOneId(before, call)) {
            unknown = call.logical().isUnknown() ? call : null;
        }
    }

    private static boolean haveOneId(RestCall one, RestCall other) {
        return Objects.equals(one.logical().id(), other.logical().id());
    }

    String method() {
        return method;
    }

    /** The value of {@code @Idempotent} on the method, its interface or the client, or null if there is none. */
    @Nullable
    Boolean annotated() {
        return annotated;
    }

    /** The HTTP service group, or null if it is unknown. */
    @Nullable
    String group() {
        return group;
    }

    CallerContext caller() {
        return caller;
    }
}
