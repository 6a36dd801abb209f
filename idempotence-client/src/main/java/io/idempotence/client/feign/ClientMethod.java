package io.idempotence.client.feign;

import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_KEY;

import feign.Feign;
import feign.MethodMetadata;
import feign.RequestTemplate;
import feign.Target;
import io.idempotence.Idempotent;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.internal.call.ClientOperation;
import java.lang.reflect.Method;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A method of a Feign client, with what it declares about IDs. */
final class ClientMethod {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotentFeign.class);

    private final Target<?> target;
    private final ClientOperation operation;
    private final @Nullable MethodMetadata declared;
    private final boolean returnsFuture;
    private final boolean interceptedBefore;
    private volatile @Nullable Boolean declaresIds;

    /**
     * @param declared what it declares, as the client's contract parsed it; null if unknown
     * @param returnsFuture whether Feign returns a future in place of this method's value
     * @param interceptedBefore whether interceptors see a request of this method before this client half does
     */
    ClientMethod(
            Target<?> target,
            Method method,
            IdempotenceClientConfig common,
            @Nullable MethodMetadata declared,
            boolean returnsFuture,
            boolean interceptedBefore) {
        this.target = target;
        this.operation = new ClientOperation(
                target.name(),
                Feign.configKey(target.type(), method),
                method.getName(),
                common,
                annotation(target.type(), method),
                LOG);
        this.declared = declared;
        this.returnsFuture = returnsFuture;
        this.interceptedBefore = interceptedBefore;
    }

    boolean isOfSameClient(ClientMethod other) {
        return target == other.target;
    }

    ClientOperation operation() {
        return operation;
    }

    @Nullable
    MethodMetadata declared() {
        return declared;
    }

    boolean returnsFuture() {
        return returnsFuture;
    }

    String configKey() {
        return operation.method();
    }

    /** Whether a request of this method may have an ID before this client half gives it one. */
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

    /**
     * Returns the value of the annotation of the method, else of its interface, else of the client, else of the interfaces that the client
     * extends.
     */
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
