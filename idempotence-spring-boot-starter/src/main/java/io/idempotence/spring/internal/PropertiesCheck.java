package io.idempotence.spring.internal;

import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertySource;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.context.properties.source.IterableConfigurationPropertySource;
import org.springframework.boot.context.properties.source.UnboundElementsSourceFilter;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.core.env.ConfigurableEnvironment;

/**
 * The check of all names below {@code idempotence}, and of what switches parts on and off, whether or not the part that reads them is
 * active. As in Spring Boot's own check, unknown names in system properties and environment variables are ignored.
 *
 * <p>It runs when the configuration classes have added their property sources, and before any bean reads a property.
 */
final class PropertiesCheck implements ApplicationContextInitializer<ConfigurableApplicationContext> {
    private static final List<String> SWITCHES = List.of(
            "idempotence.server.enabled",
            "idempotence.form.enabled",
            "idempotence.console.enabled",
            "idempotence.log-correlation");

    @Override
    public void initialize(ConfigurableApplicationContext context) {
        context.addBeanFactoryPostProcessor(beans -> check(context.getEnvironment()));
    }

    private static void check(ConfigurableEnvironment environment) {
        SortedMap<ConfigurationPropertyName, ConfigurationProperty> found = new TreeMap<>();
        UnboundElementsSourceFilter isChecked = new UnboundElementsSourceFilter();
        for (ConfigurationPropertySource source : ConfigurationPropertySources.from(environment.getPropertySources())) {
            if (isChecked.apply(source) && source instanceof IterableConfigurationPropertySource names) {
                names.stream()
                        .filter(PropertyNames.ROOT::isAncestorOf)
                        .forEach(name -> add(source.getConfigurationProperty(name), found));
            }
        }
        if (!found.isEmpty()) {
            refuseUnknown(found);
        }
        SWITCHES.forEach(name -> Switches.isOn(environment, name, true));
    }

    private static void add(
            @Nullable ConfigurationProperty property,
            SortedMap<ConfigurationPropertyName, ConfigurationProperty> found) {
        if (property != null) {
            found.putIfAbsent(property.getName(), property);
        }
    }

    private static void refuseUnknown(SortedMap<ConfigurationPropertyName, ConfigurationProperty> found) {
        PropertyNames names = new PropertyNames();
        List<ConfigurationProperty> unknown = found.values().stream()
                .filter(property -> !names.isKnown(property))
                .toList();
        if (!unknown.isEmpty()) {
            TreeSet<String> nearest = new TreeSet<>();
            unknown.forEach(property -> nearest.add(names.nearest(property.getName())));
            boolean isOfGroups = unknown.stream().allMatch(property -> names.isInGroup(property.getName()));
            throw SetUpException.of(
                    "There is no such property: "
                            + String.join(
                                    "; ",
                                    unknown.stream()
                                            .map(PropertyNames::described)
                                            .toList())
                            + ".",
                    "Remove it, or correct its name. Nearest: " + String.join(", ", nearest) + "."
                            + (isOfGroups
                                    ? ""
                                    : " A property of the application's own needs another prefix than idempotence."));
        }
    }
}
