package io.idempotence.spring.client;

import feign.BaseBuilder;
import feign.Client;
import feign.Feign;
import feign.RequestInterceptor;
import io.idempotence.client.feign.IdempotentFeign;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.springframework.util.ReflectionUtils;

/** The settings of a Feign builder that have no accessor. */
final class FeignBuilders {
    private static final Field INTERCEPTORS = field(BaseBuilder.class, "requestInterceptors");
    private static final Field CAPABILITIES = field(BaseBuilder.class, "capabilities");
    private static final Field CLIENT = field(Feign.Builder.class, "client");

    private FeignBuilders() {}

    static List<RequestInterceptor> interceptors(Feign.Builder builder) {
        List<RequestInterceptor> interceptors = new ArrayList<>();
        elements(INTERCEPTORS, builder).forEach(one -> interceptors.add((RequestInterceptor) one));
        return interceptors;
    }

    /** Whether the application has installed the client half itself. */
    static boolean isInstalled(Feign.Builder builder) {
        return elements(CAPABILITIES, builder).stream().anyMatch(IdempotentFeign.Installed.class::isInstance);
    }

    static @Nullable Client client(Feign.Builder builder) {
        return (Client) ReflectionUtils.getField(CLIENT, builder);
    }

    private static List<?> elements(Field field, Feign.Builder builder) {
        return (List<?>) Objects.requireNonNull(ReflectionUtils.getField(field, builder));
    }

    private static Field field(Class<?> type, String name) {
        Field field = ReflectionUtils.findField(type, name);
        if (field == null) {
            throw new IllegalStateException("this version of Feign has no " + type.getSimpleName() + "." + name
                    + "; use a version of Spring Cloud that docs/spring.md lists");
        }
        ReflectionUtils.makeAccessible(field);
        return field;
    }
}
