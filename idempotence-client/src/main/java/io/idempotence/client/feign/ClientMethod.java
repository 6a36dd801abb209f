package io.idempotence.client.feign;

import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_KEY;

import feign.Feign;
import feign.MethodMetadata;
import feign.RequestTemplate;
import io.github.resilience4j.retry.Retry;
import io.idempotence.IdempotenceId;
import io.idempotence.Idempotent;
import io.idempotence.InboundRequest;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.internal.call.LogicalCall;
import io.idempotence.client.internal.call.RepeatWarning;
import io.idempotence.client.internal.call.Retries;
import io.idempotence.client.internal.http.HttpMethods;
import java.lang.reflect.Method;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One method of a client, and whether it carries an ID. */
final class ClientMethod {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotentFeign.class);

    private final FeignTarget client;
    private final String name;
    private final String configKey;
    private final IdempotenceClientConfig config;
    private final Retries retries;
    private final @Nullable Boolean annotated;
    private final boolean returnsFuture;
    private final boolean interceptedBefore;
    private final RepeatWarning repeats;
    private volatile @Nullable Boolean declaresIds;

    /**
     * @param returnsFuture whether Feign returns a future in place of this method's value
     * @param interceptedBefore whether interceptors see a request of this method before this half does
     */
    ClientMethod(FeignTarget client, Method method, boolean returnsFuture, boolean interceptedBefore) {
        this.client = client;
        this.interceptedBefore = interceptedBefore;
        this.name = method.getName();
        this.configKey = Feign.configKey(client.type(), method);
        this.config = client.configOf(method);
        this.retries = new Retries(client.name(), config);
        this.annotated = annotation(client.type(), method);
        this.returnsFuture = returnsFuture;
        this.repeats = new RepeatWarning(LOG, client.name(), configKey);
    }

    IdempotenceClientConfig config() {
        return config;
    }

    /** As the registry has it now. */
    Retry retry() {
        return retries.of(name);
    }

    LogicalCall open() {
        return new LogicalCall(client.name(), configKey, config, client.budget());
    }

    /** The ID of the next call of this method within an inbound request. */
    IdempotenceId idWithin(InboundRequest request, String target, byte @Nullable [] body) {
        return request.idOfNextCall(client.name(), configKey, target, body);
    }

    RepeatWarning repeats() {
        return repeats;
    }

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
        if (HttpMethods.isSafe(httpMethod)) {
            return false;
        }
        if (annotated != null) {
            return annotated;
        }
        return given || config.methods().contains(httpMethod.toUpperCase(Locale.ROOT));
    }

    /** False if a request of this method certainly has no ID before this half gives it one. */
    boolean mayBeGivenAnId(RequestTemplate template) {
        if (interceptedBefore) {
            return true;
        }
        Boolean known = declaresIds;
        if (known == null) {
            known = declaresIds(template.methodMetadata());
            declaresIds = known;
        }
        return known;
    }

    private static boolean declaresIds(@Nullable MethodMetadata method) {
        return method == null
                || method.headerMapIndex() != null
                || method.template().headers().keySet().stream().anyMatch(IDEMPOTENCY_KEY::equalsIgnoreCase);
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
