package io.idempotence.spring.server;

import io.idempotence.internal.Spelling;
import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.BindException;
import org.springframework.boot.context.properties.bind.DataObjectPropertyName;
import org.springframework.boot.context.properties.bind.UnboundConfigurationPropertiesException;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;
import org.springframework.util.unit.DataSize;

/** The analyzer that explains an unknown property below {@code idempotence.server}, or a value that cannot be read. */
@Order(Ordered.HIGHEST_PRECEDENCE)
final class ServerPropertiesFailureAnalyzer extends AbstractFailureAnalyzer<BindException> {
    private static final ConfigurationPropertyName PREFIX =
            ConfigurationPropertyName.of(IdempotenceServerProperties.PREFIX);
    private static final Map<Class<?>, String> ALLOWED = Map.of(
            Duration.class, "a duration, such as 500ms, 10s, 5m or 24h",
            DataSize.class, "a size, such as 512KB or 10MB",
            boolean.class, "true or false",
            int.class, "a whole number",
            Integer.class, "a whole number",
            URI.class, "a URI");

    @Override
    protected @Nullable FailureAnalysis analyze(Throwable rootFailure, BindException failure) {
        if (!PREFIX.equals(failure.getName()) && !PREFIX.isAncestorOf(failure.getName())) {
            return null;
        }
        UnboundConfigurationPropertiesException unknown =
                findCause(failure, UnboundConfigurationPropertiesException.class);
        if (unknown != null) {
            return unknown(unknown, failure);
        }
        ConfigurationProperty property = failure.getProperty();
        return property == null ? null : unreadable(property, failure);
    }

    private static FailureAnalysis unknown(UnboundConfigurationPropertiesException unknown, BindException failure) {
        List<String> found = new ArrayList<>();
        TreeSet<String> nearest = new TreeSet<>();
        for (ConfigurationProperty property : unknown.getUnboundProperties()) {
            found.add(described(property));
            nearest.add(nearest(property.getName().toString()));
        }
        return new FailureAnalysis(
                "There is no such property: " + String.join("; ", found) + ".",
                "Remove it, or correct its name. Nearest: " + String.join(", ", nearest) + ".",
                failure);
    }

    private static FailureAnalysis unreadable(ConfigurationProperty property, BindException failure) {
        Class<?> type = failure.getTarget().getType().resolve(Object.class);
        String allowed = type.isEnum()
                ? Stream.of(type.getEnumConstants())
                        .map(value -> IdempotenceServerProperties.text((Enum<?>) value))
                        .collect(Collectors.joining(", "))
                : ALLOWED.getOrDefault(type, "a " + type.getSimpleName());
        return new FailureAnalysis(
                "The property " + described(property) + " cannot be read.",
                "Change the value of " + property.getName() + ". Allowed: " + allowed + ".",
                failure);
    }

    private static String described(ConfigurationProperty property) {
        String origin = property.getOrigin() == null ? "" : " (" + property.getOrigin() + ")";
        return property.getName() + " = '" + property.getValue() + "'" + origin;
    }

    private static String nearest(String name) {
        List<String> names = new ArrayList<>();
        addNames(IdempotenceServerProperties.PREFIX, IdempotenceServerProperties.class, names);
        return Spelling.nearest(name, names);
    }

    private static void addNames(String prefix, Class<?> type, List<String> names) {
        for (var component : type.getRecordComponents()) {
            String name = prefix + "." + DataObjectPropertyName.toDashedForm(component.getName());
            if (component.getType().isRecord()) {
                addNames(name, component.getType(), names);
            } else {
                names.add(name);
            }
        }
    }
}
