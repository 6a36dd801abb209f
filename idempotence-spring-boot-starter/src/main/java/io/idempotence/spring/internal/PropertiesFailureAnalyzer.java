package io.idempotence.spring.internal;

import java.net.URI;
import java.time.Duration;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.BindException;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;
import org.springframework.util.unit.DataSize;

/** The analyzer that explains a property below {@code idempotence} whose value cannot be read. */
@Order(Ordered.HIGHEST_PRECEDENCE)
final class PropertiesFailureAnalyzer extends AbstractFailureAnalyzer<BindException> {
    private static final Map<Class<?>, String> ALLOWED = Map.of(
            Duration.class, "a duration, such as 500ms, 10s, 5m or 24h",
            DataSize.class, "a size, such as 512KB or 10MB",
            boolean.class, "true or false",
            Boolean.class, "true or false",
            int.class, "a whole number",
            Integer.class, "a whole number",
            URI.class, "a URI");

    @Override
    protected @Nullable FailureAnalysis analyze(Throwable rootFailure, BindException failure) {
        ConfigurationProperty property = failure.getProperty();
        if (property == null || !PropertyNames.ROOT.isAncestorOf(property.getName())) {
            return null;
        }
        Class<?> type = failure.getTarget().getType().resolve(Object.class);
        String allowed = type.isEnum()
                ? Stream.of(type.getEnumConstants())
                        .map(value -> ((Enum<?>) value)
                                .name()
                                .toLowerCase(Locale.ROOT)
                                .replace('_', '-'))
                        .collect(Collectors.joining(", "))
                : ALLOWED.getOrDefault(type, "a " + type.getSimpleName());
        return new FailureAnalysis(
                "The property " + PropertyNames.described(property) + " cannot be read.",
                "Change the value of " + property.getName() + ". Allowed: " + allowed + ".",
                failure);
    }
}
