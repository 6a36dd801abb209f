package io.idempotence.spring.client;

import io.idempotence.client.IdempotenceClientConfigBuilder;
import io.idempotence.internal.Spelling;
import io.idempotence.spring.internal.SetUpException;
import io.idempotence.spring.internal.Switches;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
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

    /** @throws io.idempotence.client.IdempotenceClientConfigException if a setting is unknown or malformed */
    static void copy(ConfigurableEnvironment environment, IdempotenceClientConfigBuilder config) {
        copy(environment, config, environment::resolveRequiredPlaceholders);
    }

    /** Checks like {@link #copy}. A placeholder need not have a value, because nothing may read it. */
    static void check(ConfigurableEnvironment environment, IdempotenceClientConfigBuilder unused) {
        copy(environment, unused, text -> {
            String resolved = environment.resolvePlaceholders(text);
            return resolved.contains("${") ? null : resolved;
        });
    }

    /** @param resolve returns null for a value that is not to be set */
    private static void copy(
            ConfigurableEnvironment environment,
            IdempotenceClientConfigBuilder config,
            Function<String, @Nullable String> resolve) {
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
                    resolve,
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
                .anyMatch(name ->
                        Switches.value(environment.getProperty(name, "")).orElse(false));
    }

    private static void copy(
            EnumerablePropertySource<?> source,
            Predicate<String> isInEffect,
            Function<String, @Nullable String> resolve,
            IdempotenceClientConfigBuilder config) {
        SortedMap<String, SortedMap<Integer, String>> lists = new TreeMap<>();
        for (String name : Arrays.stream(source.getPropertyNames())
                .filter(name -> isOurs(name) && !isRestClients(name) && isInEffect.test(name))
                .sorted()
                .toList()) {
            refuseLikeRestClients(name, source);
            String resolved = resolve.apply(String.valueOf(source.getProperty(name)));
            if (resolved == null) {
                continue;
            }
            String value = inOurForm(name, resolved);
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
        return inLetters(name).equals("restclients");
    }

    /** The settings of the client half do not have this name, so none of them would be proposed that is like it. */
    private static void refuseLikeRestClients(String name, EnumerablePropertySource<?> source) {
        if (Spelling.distance(inLetters(name), "restclients") <= 2) {
            throw SetUpException.of(
                    "There is no such property: " + name + " = '" + source.getProperty(name) + "' ("
                            + origin(source, name) + ").",
                    "Remove it, or correct its name. Nearest: " + REST_CLIENTS + ".");
        }
    }

    private static String inLetters(String name) {
        return name.substring(PREFIX.length()).replaceAll("[-_]", "").toLowerCase(Locale.ROOT);
    }

    /** Spring has more words for true and false than the client half. */
    private static String inOurForm(String name, String value) {
        return name.toLowerCase(Locale.ROOT).endsWith("enabled")
                ? Switches.value(value).map(String::valueOf).orElse(value)
                : value;
    }

    private static String origin(EnumerablePropertySource<?> source, String name) {
        Origin origin = OriginLookup.getOrigin(source, name);
        return origin == null ? "property source '" + source.getName() + "'" : origin.toString();
    }
}
