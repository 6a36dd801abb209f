package io.idempotence.client.feign;

import feign.Feign;
import io.idempotence.Idempotent;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** One method of a client, and whether it carries an ID. */
final class ClientMethod {
    private final FeignTarget client;
    private final String name;
    private final String configKey;
    private final @Nullable Boolean annotated;
    private final boolean returnsFuture;

    ClientMethod(FeignTarget client, Method method) {
        this.client = client;
        this.name = method.getName();
        this.configKey = Feign.configKey(client.type(), method);
        this.annotated = annotation(client.type(), method);
        this.returnsFuture = method.getGenericReturnType() instanceof ParameterizedType
                && method.getReturnType().isAssignableFrom(CompletableFuture.class);
    }

    FeignTarget client() {
        return client;
    }

    String name() {
        return name;
    }

    /** As AsyncFeign sees it. */
    boolean returnsFuture() {
        return returnsFuture;
    }

    String configKey() {
        return configKey;
    }

    String scopeName() {
        return configKey + " of " + client.name();
    }

    boolean carriesId(String httpMethod, boolean given) {
        if (KeyHeader.isSafe(httpMethod)) {
            return false;
        }
        if (annotated != null) {
            return annotated;
        }
        return given || client.config().methods().contains(httpMethod.toUpperCase(Locale.ROOT));
    }

    /** The method's own annotation, then its interface's, then the client's, then those of what the client extends. */
    static @Nullable Boolean annotation(Class<?> type, Method method) {
        Deque<Class<?>> interfaces = new ArrayDeque<>();
        interfaces.add(type);
        Boolean ofMethod = value(method.getAnnotation(Idempotent.class));
        Boolean ofType = value(method.getDeclaringClass().getAnnotation(Idempotent.class));
        while (!interfaces.isEmpty()) {
            Class<?> next = interfaces.remove();
            if (ofMethod == null) {
                ofMethod = value(declaredAnnotation(next, method));
            }
            if (ofType == null) {
                ofType = value(next.getAnnotation(Idempotent.class));
            }
            interfaces.addAll(List.of(next.getInterfaces()));
        }
        return ofMethod != null ? ofMethod : ofType;
    }

    private static @Nullable Idempotent declaredAnnotation(Class<?> type, Method method) {
        try {
            return type.getDeclaredMethod(method.getName(), method.getParameterTypes())
                    .getAnnotation(Idempotent.class);
        } catch (NoSuchMethodException e) {
            return null;
        }
    }

    private static @Nullable Boolean value(@Nullable Idempotent annotation) {
        return annotation == null ? null : annotation.value();
    }
}
