package io.idempotence.spring.internal;

import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.core.env.Environment;

/** The analyzer that explains a {@link SetUpException}. */
final class SetUpFailureAnalyzer extends AbstractFailureAnalyzer<SetUpException> {
    private final Environment environment;

    SetUpFailureAnalyzer(Environment environment) {
        this.environment = environment;
    }

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, SetUpException fault) {
        String description = Objects.requireNonNull(fault.getMessage());
        String property = fault.property();
        if (property != null) {
            ConfigurationProperty written = written(ConfigurationPropertyName.of(property));
            description = written == null
                    ? "The property " + property + " has the value '" + fault.value() + "': " + description + "."
                    : "The property " + property + " has the value '" + written.getValue() + "' (" + written.getOrigin()
                            + "): " + description + ".";
        }
        return new FailureAnalysis(description, fault.action(), fault);
    }

    /** The property as somebody wrote it; null if nobody did, or if it is a list over several lines. */
    private @Nullable ConfigurationProperty written(ConfigurationPropertyName name) {
        for (var source : ConfigurationPropertySources.get(environment)) {
            ConfigurationProperty found = source.getConfigurationProperty(name);
            if (found != null) {
                return found;
            }
        }
        return null;
    }
}
