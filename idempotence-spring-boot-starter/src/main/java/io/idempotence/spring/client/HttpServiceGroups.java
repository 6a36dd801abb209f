package io.idempotence.spring.client;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.core.Ordered;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;
import org.springframework.web.service.invoker.HttpRequestValues;
import org.springframework.web.service.invoker.HttpServiceProxyFactory;

/**
 * The configurer of HTTP service groups, which exist from Spring 7 on. It gives each request an attribute that leads to its {@link
 * HttpServiceCall}: a circuit breaker around the client makes the request in another thread. By reflection, because this class is compiled
 * with Spring 6.
 */
final class HttpServiceGroups implements FactoryBean<Object> {
    static final String CONFIGURER = "org.springframework.web.client.support.RestClientHttpServiceGroupConfigurer";

    /** Spring Cloud's configurer that puts circuit breakers around the clients of groups. */
    static final String BREAKERS =
            "org.springframework.cloud.client.circuitbreaker.httpservice.CircuitBreakerRestClientHttpServiceGroupConfigurer";

    private static final String PROCESSOR = "org.springframework.web.service.invoker.HttpRequestValues$Processor";

    private final ClassLoader classes;

    HttpServiceGroups(ClassLoader classes) {
        this.classes = classes;
    }

    @Override
    public Class<?> getObjectType() {
        return ClassUtils.resolveClassName(CONFIGURER, classes);
    }

    @Override
    public Object getObject() {
        return implementing(
                getObjectType(), Map.of("configureGroups", args -> configure(args[0]), "getOrder", args -> {}));
    }

    private void configure(Object groups) {
        Method forEach = Arrays.stream(groups.getClass().getMethods())
                .filter(method -> method.getName().equals("forEachProxyFactory"))
                .findFirst()
                .orElseThrow();
        ReflectionUtils.makeAccessible(forEach);
        Object callback = implementing(
                forEach.getParameterTypes()[0],
                Map.of("withProxyFactory", args -> addProcessor((HttpServiceProxyFactory.Builder) args[1])));
        ReflectionUtils.invokeMethod(forEach, groups, callback);
    }

    private void addProcessor(HttpServiceProxyFactory.Builder factory) {
        Class<?> type = ClassUtils.resolveClassName(PROCESSOR, classes);
        Object processor = implementing(
                type,
                Map.of("process", args -> HttpServiceCall.mark((HttpRequestValues.Builder) args[args.length - 1])));
        ReflectionUtils.invokeMethod(
                ClassUtils.getMethod(HttpServiceProxyFactory.Builder.class, "httpRequestValuesProcessor", type),
                factory,
                processor);
    }

    private Object implementing(Class<?> type, Map<String, Consumer<Object[]>> methods) {
        InvocationHandler handler = (proxy, method, args) -> {
            Consumer<Object[]> own = methods.get(method.getName());
            if (own != null) {
                own.accept(args == null ? new Object[0] : args);
                return method.getReturnType() == int.class ? Integer.valueOf(Ordered.LOWEST_PRECEDENCE) : null;
            }
            return ofObject(type, proxy, method, args);
        };
        return Proxy.newProxyInstance(classes, new Class<?>[] {type}, handler);
    }

    private static @Nullable Object ofObject(
            Class<?> type, Object proxy, Method method, @Nullable Object @Nullable [] args) {
        return switch (method.getName()) {
            case "equals" -> args != null && proxy == args[0];
            case "hashCode" -> System.identityHashCode(proxy);
            case "toString" -> HttpServiceGroups.class.getName();
            default ->
                throw new UnsupportedOperationException(type.getName() + "." + method.getName()
                        + Arrays.stream(method.getParameterTypes())
                                .map(Class::getSimpleName)
                                .collect(Collectors.joining(", ", "(", ")"))
                        + " is of a version of Spring that is not known; use one that docs/spring.md lists");
        };
    }
}
