package io.idempotence.spring.client;

import io.idempotence.client.IdempotenceClientConfigBuilder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.springframework.boot.origin.Origin;
import org.springframework.boot.origin.OriginLookup;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.EnumerablePropertySource;
import org.springframework.core.env.PropertySource;

/**
 * The settings {@code idempotence.client.*} of Spring's environment. Names are read as they are written: Spring's binder removes characters
 * from the keys of a map, such as the separator of a client and its method.
 */
final class EnvironmentSettings {
    /** The setting that only Spring's clients have. */
    static final String REST_CLIENTS = "idempotence.client.rest-clients";

    private static final String PREFIX = "idempotence.client.";
    private static final String VARIABLE_PREFIX = "IDEMPOTENCE_CLIENT_";

    /** A list in YAML is one property for each item. */
    private static final Pattern ITEM = Pattern.compile("(.+)\\[(\\d+)]");

    private EnvironmentSettings() {}

    /** @throws io.idempotence.client.IdempotenceConfigException if a setting is unknown or malformed */
    static void copy(ConfigurableEnvironment environment, IdempotenceClientConfigBuilder config) {
        List<EnumerablePropertySource<?>> sources = new ArrayList<>();
        for (PropertySource<?> source : environment.getPropertySources()) {
            if (source instanceof EnumerablePropertySource<?> enumerable) {
                sources.add(enumerable);
            }
        }
        for (int i = sources.size() - 1; i >= 0; i--) {
            List<EnumerablePropertySource<?>> above = sources.subList(0, i);
            // A placeholder in a value that another one replaces need not have a value.
            copy(
                    sources.get(i),
                    name -> above.stream().noneMatch(source -> source.containsProperty(name)),
                    environment,
                    config);
        }
    }

    /** Whether the settings of some client enable it, whatever the common ones are. */
    static boolean enableOneClient(ConfigurableEnvironment environment) {
        return environment.getPropertySources().stream()
                .filter(EnumerablePropertySource.class::isInstance)
                .flatMap(source -> Arrays.stream(((EnumerablePropertySource<?>) source).getPropertyNames()))
                .filter(EnvironmentSettings::isOurs)
                .filter(name -> name.substring(PREFIX.length()).startsWith("clients") && name.endsWith(".enabled"))
                .anyMatch(name -> "true".equalsIgnoreCase(environment.getProperty(name)));
    }

    private static void copy(
            EnumerablePropertySource<?> source,
            Predicate<String> isInEffect,
            ConfigurableEnvironment environment,
            IdempotenceClientConfigBuilder config) {
        SortedMap<String, SortedMap<Integer, String>> lists = new TreeMap<>();
        for (String name : Arrays.stream(source.getPropertyNames())
                .filter(name -> isOurs(name) && !isRestClients(name) && isInEffect.test(name))
                .sorted()
                .toList()) {
            String value = environment.resolveRequiredPlaceholders(String.valueOf(source.getProperty(name)));
            Matcher item = ITEM.matcher(name);
            if (item.matches()) {
                lists.computeIfAbsent(item.group(1), list -> new TreeMap<>())
                        .put(Integer.valueOf(item.group(2)), value);
            } else {
                config.set(name, value, origin(source, name));
            }
        }
        lists.forEach((name, items) -> config.set(
                name, String.join(",", items.values()), origin(source, name + "[" + items.firstKey() + "]")));
    }

    private static boolean isOurs(String name) {
        return name.toLowerCase(Locale.ROOT).startsWith(PREFIX) || name.startsWith(VARIABLE_PREFIX);
    }

    private static boolean isRestClients(String name) {
        return name.substring(PREFIX.length()).replaceAll("[-_]", "").equalsIgnoreCase("restclients");
    }

    private static String origin(EnumerablePropertySource<?> source, String name) {
        Origin origin = OriginLookup.getOrigin(source, name);
        return origin == null ? "property source '" + source.getName() + "'" : origin.toString();
    }
}
