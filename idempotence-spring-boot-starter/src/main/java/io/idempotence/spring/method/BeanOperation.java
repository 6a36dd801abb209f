package io.idempotence.spring.method;

import io.idempotence.Idempotent;
import io.idempotence.internal.MaxWait;
import io.idempotence.server.IdempotencePolicy;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.springframework.util.ClassUtils;

/**
 * A bean method with {@code @Idempotent}. Thread-safe.
 *
 * @param name the operation of its IDs
 */
record BeanOperation(
        String name,
        IdempotentOperation.Origin namedBy,
        String handler,
        Method method,
        OperationSettings declared,
        IdExpression id,
        MethodResult result,
        IdempotencePolicy policy,
        Duration maxWait) {

    /** Reads and checks the annotation of a method. Returns null after a fault. */
    static @Nullable BeanOperation of(
            Idempotent annotation,
            Method method,
            Class<?> type,
            OperationSources sources,
            JsonMappers json,
            List<OperationFault> all) {
        OperationFaults faults = sources.faultsAt(type, method, all);
        int before = all.size();
        checkProxy(method, type, faults);
        if (!annotation.required()) {
            faults.add(
                    "it has required = false, but every call of a bean method needs an ID",
                    "Remove required from methods that are not handlers.");
        }
        OperationSettings settings = OperationSettings.of(annotation, faults);
        IdExpression id = IdExpression.of(annotation.id(), method, sources.beans(), faults);
        MethodResult result = MethodResult.of(method, type, json::get, faults);
        Duration maxWait = settings.maxWait() == null ? sources.maxWait() : settings.maxWait();
        IdempotencePolicy policy = null;
        if (!settings.lacksRecovery(sources.recovery(), faults)) {
            try {
                policy = settings.policy(sources.policy(), sources.recovery());
                MaxWait.checked(maxWait);
            } catch (IllegalArgumentException e) {
                String fault = String.valueOf(e.getMessage());
                faults.add(fault, settings.fix(fault) + ".");
            }
        }
        if (all.size() > before) {
            return null;
        }
        Class<?> user = ClassUtils.getUserClass(type);
        boolean isNamed = !annotation.operation().isEmpty();
        return new BeanOperation(
                isNamed ? annotation.operation() : user.getName() + "." + method.getName(),
                isNamed ? IdempotentOperation.Origin.ANNOTATION : IdempotentOperation.Origin.DEFAULT,
                faults.where(),
                method,
                settings,
                Objects.requireNonNull(id),
                Objects.requireNonNull(result),
                Objects.requireNonNull(policy),
                maxWait);
    }

    private static void checkProxy(Method method, Class<?> type, OperationFaults faults) {
        String modifier = Modifier.isPrivate(method.getModifiers())
                ? "private"
                : Modifier.isStatic(method.getModifiers())
                        ? "static"
                        : Modifier.isFinal(method.getModifiers())
                                ? "final"
                                : Modifier.isFinal(type.getModifiers()) ? "in a final class" : null;
        if (modifier != null) {
            faults.add(
                    "it is " + modifier + ", so Spring cannot intercept its calls",
                    "Make the method public, and neither the method nor its class final or static.");
        }
    }
}
