package io.idempotence.client.feign;

import feign.AsyncClient;
import feign.AsyncFeign;
import feign.BaseBuilder;
import feign.Client;
import feign.Feign;
import feign.MethodInfo;
import feign.MethodInfoResolver;
import feign.MethodMetadata;
import feign.Request;
import feign.RequestTemplate;
import feign.Retryer;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.internal.http.CallThreads;
import io.idempotence.client.internal.http.Watchdog;
import io.idempotence.client.internal.http.Watchdog.Watch;
import io.idempotence.client.internal.scope.ThreadBound;
import io.idempotence.client.internal.scope.ThreadBound.Task;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What interceptor, client and method handlers of one builder share. */
final class Installation {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotentFeign.class);
    private static final Set<String> USUAL_RETRYERS = Set.of("feign.Retryer$Default", "feign.DefaultRetryer");

    private static final String CONTINUATION = "kotlin.coroutines.Continuation";

    private final Map<String, MethodMetadata> declared = new ConcurrentHashMap<>();
    private final IdempotenceClientConfig config;
    private final AsyncFeign.@Nullable AsyncBuilder<?> asyncBuilder;
    private final boolean interceptedBefore;
    private final ThreadBound<FeignAttempt> current = new ThreadBound<>();

    /** For handlers that copy the arguments. Holds only while the proxy's call is on the stack. */
    private final ThreadBound<OpenCall> open = new ThreadBound<>();

    /** For clients that talk on another thread; holds while an attempt runs. */
    private final ConcurrentMap<IdentityKey, FeignAttempt> byTemplate = new ConcurrentHashMap<>();

    private final AtomicBoolean retryerTold = new AtomicBoolean();
    private final AtomicBoolean orphanTold = new AtomicBoolean();
    private final AtomicBoolean strangerTold = new AtomicBoolean();
    private final AtomicBoolean redirectTold = new AtomicBoolean();
    private final ThreadBound<Watch> sending = new ThreadBound<>();
    private final CallThreads threads = new CallThreads();
    private final Watchdog watchdog = new Watchdog(threads);

    private record OpenCall(FeignCall call, ClientMethod method, Object[] args) {
        /** The very same arguments: a handler may also split one call into several, which must not share an ID. */
        boolean isFor(ClientMethod other, Object @Nullable [] otherArgs) {
            int length = otherArgs == null ? 0 : otherArgs.length;
            if (method != other || args.length != length) {
                return false;
            }
            for (int i = 0; i < length; i++) {
                if (otherArgs == null || args[i] != otherArgs[i]) {
                    return false;
                }
            }
            return true;
        }
    }

    /** @throws IllegalStateException if it is installed already */
    Installation(IdempotenceClientConfig config, BaseBuilder<?, ?> builder) {
        if (elements(builder, "capabilities").stream().anyMatch(IdempotenceCapability.class::isInstance)) {
            throw new IllegalStateException("IdempotentFeign.install was called twice on this builder; call it once");
        }
        this.config = config;
        this.asyncBuilder = builder instanceof AsyncFeign.AsyncBuilder<?> async ? async : null;
        this.interceptedBefore = !elements(builder, "requestInterceptors").isEmpty();
    }

    /** @throws IllegalStateException where Feign keeps them in a place unknown to this version */
    private static List<?> elements(BaseBuilder<?, ?> builder, String field) {
        try {
            return (List<?>) Objects.requireNonNull(FeignField.of(builder, BaseBuilder.class, field));
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(
                    "this version of Feign has no BaseBuilder." + field + "; use one that docs/feign.md lists", e);
        }
    }

    /** Whether interceptors may give a request an ID before this half sees it. */
    boolean isInterceptedBefore() {
        return interceptedBefore;
    }

    boolean isAsync() {
        return asyncBuilder != null;
    }

    /**
     * Whether Feign returns a future in place of the method's value: its {@link MethodInfoResolver} decides, which also sees the type
     * arguments of inherited interfaces.
     *
     * @throws IllegalArgumentException if the method is a suspend function of Kotlin
     */
    boolean returnsFuture(Class<?> type, Method method) {
        String configKey = Feign.configKey(type, method);
        if (Arrays.stream(method.getParameterTypes()).anyMatch(parameter -> CONTINUATION.equals(parameter.getName()))) {
            throw new IllegalArgumentException(
                    configKey + " is a suspend function of Kotlin, whose end the client half cannot"
                            + " see, so its calls would be unprotected; declare that it returns a CompletableFuture, and await that");
        }
        if (asyncBuilder == null) {
            return false;
        }
        MethodMetadata parsed = declared.get(configKey);
        Method resolved = parsed == null || parsed.method() == null ? method : parsed.method();
        try {
            MethodInfoResolver resolver = (MethodInfoResolver)
                    FeignField.of(asyncBuilder, AsyncFeign.AsyncBuilder.class, "methodInfoResolver");
            MethodInfo info = Objects.requireNonNull(resolver).resolve(type, resolved);
            return Boolean.TRUE.equals(FeignField.of(info, info.getClass(), "asyncReturnType"));
        } catch (ReflectiveOperationException e) {
            Type returned = parsed == null ? method.getGenericReturnType() : parsed.returnType();
            return returned instanceof ParameterizedType future
                    && future.getRawType() instanceof Class<?> raw
                    && raw.isAssignableFrom(CompletableFuture.class);
        }
    }

    /** From 13.13 on, Feign makes its own default only after capabilities have seen that there is none; this is its like. */
    AsyncClient<Object> defaultAsyncClient() {
        ExecutorService given = givenExecutor();
        // Responses are decoded there, with classes of whoever builds the client, and not of the first caller.
        ClassLoader context = Thread.currentThread().getContextClassLoader();
        ExecutorService executor = given != null
                ? given
                : CallThreads.cached(runnable -> {
                    Thread thread = new Thread(runnable, "idempotence-feign-async");
                    thread.setDaemon(true);
                    thread.setContextClassLoader(context);
                    return thread;
                });
        return new AsyncClient.Default<>(new Client.Default(null, null), executor);
    }

    private @Nullable ExecutorService givenExecutor() {
        try {
            return (ExecutorService) FeignField.of(
                    Objects.requireNonNull(asyncBuilder), AsyncFeign.AsyncBuilder.class, "executorService");
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(
                    "this AsyncFeign.builder() has no client; give it one:"
                            + " .client(new AsyncClient.Default<>(new Client.Default(null, null), executor))",
                    e);
        }
    }

    IdempotenceClientConfig config() {
        return config;
    }

    @Nullable
    FeignAttempt attemptOf(@Nullable Request request) {
        return attemptOf(request == null ? null : request.requestTemplate());
    }

    /** Feign's own Retryer may ask on a thread of the HTTP client, where only the template leads back to the attempt. */
    @Nullable
    FeignAttempt attemptOf(@Nullable RequestTemplate template) {
        FeignAttempt attempt = current.get();
        return attempt != null || template == null ? attempt : byTemplate.get(new IdentityKey(template));
    }

    void remember(RequestTemplate template, FeignAttempt attempt) {
        byTemplate.put(new IdentityKey(template), attempt);
    }

    void end(FeignAttempt attempt) {
        attempt.ended();
        RequestTemplate template = attempt.prepared();
        if (template != null) {
            byTemplate.remove(new IdentityKey(template));
        }
    }

    private record IdentityKey(RequestTemplate template) {
        @Override
        public int hashCode() {
            return System.identityHashCode(template);
        }

        @Override
        public boolean equals(@Nullable Object other) {
            return other instanceof IdentityKey that && template == that.template;
        }
    }

    /** Runs {@code work} with {@code call} as the open one of this thread; calls nest. */
    @Nullable
    Object whileOpen(FeignCall call, ClientMethod method, Object[] args, Task<@Nullable Object, Throwable> work)
            throws Throwable {
        return open.during(new OpenCall(call, method, args), work);
    }

    @Nullable
    FeignCall openCall(ClientMethod method, Object @Nullable [] args) {
        OpenCall call = open.get();
        return call != null && call.isFor(method, args) ? call.call : null;
    }

    List<MethodMetadata> learn(List<MethodMetadata> methods) {
        methods.forEach(method -> declared.put(method.configKey(), method));
        return methods;
    }

    /** What a method declares, as the client's contract understands it. */
    @Nullable
    MethodMetadata declared(ClientMethod method) {
        return declared.get(method.configKey());
    }

    int remembered() {
        return byTemplate.size();
    }

    /** Runs {@code work} with {@code attempt} as the current one of this thread; calls nest. */
    @Nullable
    Object attempting(FeignAttempt attempt, Task<@Nullable Object, Throwable> work) throws Throwable {
        return current.during(attempt, work);
    }

    void replacesRetryer(Retryer retryer) {
        boolean usual = retryer == Retryer.NEVER_RETRY
                || USUAL_RETRYERS.contains(retryer.getClass().getName());
        if (!usual && retryerTold.compareAndSet(false, true)) {
            LOG.warn(
                    "The Retryer {} is used for calls without an ID only; configure the retries of the others with"
                            + " idempotence.client.retry",
                    retryer.getClass().getName());
        }
    }

    void foundNoCall() {
        if (orphanTold.compareAndSet(false, true)) {
            LOG.warn(
                    "A request was made outside of the call that IdempotentFeign opens: retries around it will NOT keep its ID."
                            + " Another capability or handler replaced ours; call IdempotentFeign.install(builder) last");
        }
    }

    void foundNoArguments() {
        if (strangerTold.compareAndSet(false, true)) {
            LOG.warn(
                    "An invocation handler passed on a copy of the arguments, on another thread: retries around it will NOT keep the"
                            + " ID, and an IdempotenceScope is not seen. It should pass on the array it got");
        }
    }

    /** A call with an ID was redirected to another origin. */
    void staysAtOrigin(String url) {
        if (redirectTold.compareAndSet(false, true)) {
            LOG.warn(
                    "A call that carries an ID was redirected to another origin, {}, and is not sent there: the redirect is its"
                            + " response. Call that origin directly, or give such calls no ID: @Idempotent(false)",
                    Address.of(url).map(to -> to.origin().toString()).orElse("?"));
        }
    }

    CallThreads threads() {
        return threads;
    }

    Watchdog watchdog() {
        return watchdog;
    }

    /** The watch of what this thread hands to the HTTP client. */
    ThreadBound<Watch> sending() {
        return sending;
    }
}
