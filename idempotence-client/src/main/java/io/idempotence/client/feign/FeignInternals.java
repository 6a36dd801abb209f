package io.idempotence.client.feign;

import feign.AsyncClient;
import feign.AsyncFeign;
import feign.BaseBuilder;
import feign.Client;
import feign.Feign;
import feign.MethodInfo;
import feign.MethodInfoResolver;
import feign.MethodMetadata;
import io.idempotence.client.internal.http.CallThreads;
import io.idempotence.internal.DaemonThreads;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import org.jspecify.annotations.Nullable;

/** The parts of Feign that have no accessor: settings of a builder, and fields of its clients. */
final class FeignInternals {
    private static final String CONTINUATION = "kotlin.coroutines.Continuation";

    private final Map<String, MethodMetadata> declared = new ConcurrentHashMap<>();
    private final AsyncFeign.@Nullable AsyncBuilder<?> asyncBuilder;
    private final boolean interceptedBefore;

    FeignInternals(BaseBuilder<?, ?> builder) {
        this.asyncBuilder = builder instanceof AsyncFeign.AsyncBuilder<?> async ? async : null;
        this.interceptedBefore = !elements(builder, "requestInterceptors").isEmpty();
    }

    /**
     * Returns a list that a builder has collected.
     *
     * @throws IllegalStateException if this version of Feign has no such field
     */
    static List<?> elements(BaseBuilder<?, ?> builder, String field) {
        try {
            return (List<?>) Objects.requireNonNull(field(builder, BaseBuilder.class, field));
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(
                    "this version of Feign has no BaseBuilder." + field + "; use one that docs/feign.md lists", e);
        }
    }

    /**
     * Returns the value of a field.
     *
     * @param from the class that declares it, or a subclass of that
     * @throws ReflectiveOperationException if this version of Feign has no such field, or if it cannot be read
     */
    static @Nullable Object field(Object owner, Class<?> from, String name) throws ReflectiveOperationException {
        for (Class<?> type = from; type != null; type = type.getSuperclass()) {
            for (Field field : type.getDeclaredFields()) {
                if (field.getName().equals(name) && field.trySetAccessible()) {
                    return field.get(owner);
                }
            }
        }
        throw new NoSuchFieldException(from.getName() + "." + name);
    }

    /** Returns the only client that {@code client} holds; null if it holds none or several, or if its fields cannot be read. */
    static @Nullable Object clientInside(Object client) {
        Object only = null;
        for (Class<?> type = client.getClass(); type != null; type = type.getSuperclass()) {
            for (Field field : type.getDeclaredFields()) {
                Object value = Modifier.isStatic(field.getModifiers()) ? null : valueOf(field, client);
                if (value instanceof Client || value instanceof AsyncClient) {
                    if (only != null && only != value) {
                        return null;
                    }
                    only = value;
                }
            }
        }
        return only;
    }

    private static @Nullable Object valueOf(Field field, Object owner) {
        try {
            return !field.getType().isPrimitive() && field.trySetAccessible() ? field.get(owner) : null;
        } catch (IllegalAccessException e) {
            return null;
        }
    }

    /** Whether interceptors may give a request an ID before this client half sees it. */
    boolean isInterceptedBefore() {
        return interceptedBefore;
    }

    /** Keeps the methods that the client's contract has parsed. */
    List<MethodMetadata> learn(List<MethodMetadata> methods) {
        methods.forEach(method -> declared.put(method.configKey(), method));
        return methods;
    }

    /** Returns what a method declares, as the client's contract parsed it; null if unknown. */
    @Nullable
    MethodMetadata declared(Class<?> type, Method method) {
        return declared.get(Feign.configKey(type, method));
    }

    /**
     * Whether Feign returns a future in place of the method's value. Its {@link MethodInfoResolver} decides, which also sees the type
     * arguments of inherited interfaces.
     *
     * @throws IllegalArgumentException if the method is a suspend function of Kotlin
     */
    boolean returnsFuture(Class<?> type, Method method) {
        if (Arrays.stream(method.getParameterTypes()).anyMatch(parameter -> CONTINUATION.equals(parameter.getName()))) {
            throw new IllegalArgumentException(
                    Feign.configKey(type, method) + " is a suspend function of Kotlin, and the client half never sees"
                            + " its outcome, so its calls would be unprotected; declare that it returns a CompletableFuture, and await that");
        }
        if (asyncBuilder == null) {
            return false;
        }
        MethodMetadata parsed = declared(type, method);
        Method resolved = parsed == null || parsed.method() == null ? method : parsed.method();
        try {
            MethodInfoResolver resolver =
                    (MethodInfoResolver) field(asyncBuilder, AsyncFeign.AsyncBuilder.class, "methodInfoResolver");
            MethodInfo info = Objects.requireNonNull(resolver).resolve(type, resolved);
            return Boolean.TRUE.equals(field(info, info.getClass(), "asyncReturnType"));
        } catch (ReflectiveOperationException e) {
            Type returned = parsed == null ? method.getGenericReturnType() : parsed.returnType();
            return returned instanceof ParameterizedType future
                    && future.getRawType() instanceof Class<?> raw
                    && raw.isAssignableFrom(CompletableFuture.class);
        }
    }

    /**
     * Returns a copy of Feign's default client. From 13.13 on, Feign creates its own only after it has called the capabilities without one.
     */
    @SuppressWarnings("deprecation") // The oldest Feign has both only under these names.
    AsyncClient<Object> defaultAsyncClient() {
        ExecutorService given = givenExecutor();
        // Responses are decoded there, with the class loader of the thread that builds the client,
        // not of the first caller.
        ClassLoader context = Thread.currentThread().getContextClassLoader();
        ExecutorService executor = given != null
                ? given
                : CallThreads.cached(runnable -> {
                    Thread thread =
                            DaemonThreads.named("idempotence-feign-async").newThread(runnable);
                    thread.setContextClassLoader(context);
                    return thread;
                });
        return new AsyncClient.Default<>(new Client.Default(null, null), executor);
    }

    private @Nullable ExecutorService givenExecutor() {
        try {
            return (ExecutorService)
                    field(Objects.requireNonNull(asyncBuilder), AsyncFeign.AsyncBuilder.class, "executorService");
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(
                    "this AsyncFeign.builder() has no client; give it one:"
                            + " .client(new AsyncClient.Default<>(new Client.Default(null, null), executor))",
                    e);
        }
    }
}
