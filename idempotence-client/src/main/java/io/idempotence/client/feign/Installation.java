package io.idempotence.client.feign;

import feign.AsyncClient;
import feign.AsyncFeign;
import feign.BaseBuilder;
import feign.Client;
import feign.MethodMetadata;
import feign.Request;
import feign.RequestTemplate;
import feign.Retryer;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceScope.Work;
import io.idempotence.client.retry.Current;
import io.idempotence.client.retry.LeavingWarning;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What interceptor, client and method handlers of one builder share. */
final class Installation {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotentFeign.class);
    private static final Set<String> USUAL_RETRYERS = Set.of("feign.Retryer$Default", "feign.DefaultRetryer");

    private final Map<String, MethodMetadata> declared = new ConcurrentHashMap<>();
    private final IdempotenceClientConfig config;
    private final AsyncFeign.@Nullable AsyncBuilder<?> asyncBuilder;
    private final boolean interceptedBefore;
    private final Current<FeignAttempt> current = new Current<>();

    /** For handlers that copy the arguments. Holds only while the proxy's call is on the stack. */
    private final Current<OpenCall> open = new Current<>();

    /** For clients that talk on another thread; holds while an attempt runs. */
    private final ConcurrentMap<IdentityKey, FeignAttempt> byTemplate = new ConcurrentHashMap<>();

    private final AtomicBoolean retryerTold = new AtomicBoolean();
    private final AtomicBoolean orphanTold = new AtomicBoolean();
    private final AtomicBoolean strangerTold = new AtomicBoolean();
    private final LeavingWarning leaving = new LeavingWarning(LOG);

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

    Installation(IdempotenceClientConfig config, BaseBuilder<?, ?> builder) {
        this.config = config;
        this.asyncBuilder = builder instanceof AsyncFeign.AsyncBuilder<?> async ? async : null;
        this.interceptedBefore = hasInterceptors(builder);
    }

    /** True also where Feign keeps them in a place unknown to this version. */
    private static boolean hasInterceptors(BaseBuilder<?, ?> builder) {
        try {
            return !(FeignField.of(builder, BaseBuilder.class, "requestInterceptors") instanceof List<?> interceptors)
                    || !interceptors.isEmpty();
        } catch (ReflectiveOperationException e) {
            return true;
        }
    }

    /** Whether interceptors may give a request an ID before this half sees it. */
    boolean isInterceptedBefore() {
        return interceptedBefore;
    }

    boolean isAsync() {
        return asyncBuilder != null;
    }

    /** From 13.13 on, Feign makes its own default only after capabilities have seen that there is none; this is its like. */
    AsyncClient<Object> defaultAsyncClient() {
        ExecutorService given = givenExecutor();
        ExecutorService executor = given != null
                ? given
                : Executors.newCachedThreadPool(runnable -> {
                    Thread thread = new Thread(runnable, "idempotence-feign-async");
                    thread.setDaemon(true);
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
    FeignAttempt current() {
        return current.get();
    }

    @Nullable
    FeignAttempt attemptOf(Request request) {
        FeignAttempt attempt = current.get();
        if (attempt != null) {
            return attempt;
        }
        RequestTemplate template = request.requestTemplate();
        return template == null ? null : byTemplate.get(new IdentityKey(template));
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
    Object whileOpen(FeignCall call, ClientMethod method, Object[] args, Work<@Nullable Object, Throwable> work)
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
    Object attempting(FeignAttempt attempt, Work<@Nullable Object, Throwable> work) throws Throwable {
        return current.during(attempt, work);
    }

    void replacesRetryer(Retryer retryer) {
        boolean usual = retryer == Retryer.NEVER_RETRY
                || USUAL_RETRYERS.contains(retryer.getClass().getName());
        if (!usual && retryerTold.compareAndSet(false, true)) {
            LOG.warn(
                    "The Retryer {} is not used: idempotence-client retries by itself; configure idempotence.client.retry",
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

    LeavingWarning leaving() {
        return leaving;
    }
}
