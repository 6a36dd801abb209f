package io.idempotence.client;

import io.idempotence.IdempotenceIdGenerator;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** The settings by layer: common ones, then those of clients, then those of methods. Immutable. */
final class LayeredSettings {
    private static final char METHOD_SEPARATOR = '#';

    private final @Nullable String client;
    private final Map<ConfigKey<?>, ConfigValue> values;
    private final Map<String, Map<ConfigKey<?>, ConfigValue>> clients;
    private final IdempotenceIdGenerator generator;

    /** @throws IdempotenceConfigException if settings contradict each other, in common, for a client or for a method */
    LayeredSettings(Map<ConfigKey<?>, ConfigValue> values, Map<String, Map<ConfigKey<?>, ConfigValue>> clients) {
        this(
                null,
                values,
                clients.entrySet().stream()
                        .collect(Collectors.toUnmodifiableMap(
                                Map.Entry::getKey, entry -> Map.copyOf(entry.getValue()))));
        for (String name : this.clients.keySet()) {
            int separator = name.indexOf(METHOD_SEPARATOR);
            if (separator < 0) {
                forClient(name);
            } else {
                forMethod(name.substring(0, separator), name.substring(separator + 1));
            }
        }
    }

    private LayeredSettings(
            @Nullable String client,
            Map<ConfigKey<?>, ConfigValue> values,
            Map<String, Map<ConfigKey<?>, ConfigValue>> clients) {
        this.client = client;
        this.values = Map.copyOf(values);
        this.clients = clients;
        check();
        this.generator = makeGenerator();
    }

    /** Copies these settings to mutable maps. */
    void copyTo(Map<ConfigKey<?>, ConfigValue> common, Map<String, Map<ConfigKey<?>, ConfigValue>> ofClients) {
        common.putAll(values);
        clients.forEach((name, own) -> ofClients.put(name, new HashMap<>(own)));
    }

    /** The settings of a client: its own override the common ones. */
    LayeredSettings forClient(String name) {
        return new LayeredSettings(name, under(clients.getOrDefault(name, Map.of())), Map.of());
    }

    /** The settings of a method: its own override the client's. */
    LayeredSettings forMethod(String name, String method) {
        String qualified = name + METHOD_SEPARATOR + method;
        Map<ConfigKey<?>, ConfigValue> own = clients.getOrDefault(qualified, Map.of());
        own.forEach((key, setting) -> {
            if (key.propertyName().startsWith("budget.")) {
                throw new IdempotenceConfigException(
                        setting.spelling(),
                        setting.source(),
                        "a budget belongs to a client, not to one of its methods; set it for the client");
            }
        });
        return new LayeredSettings(qualified, forClient(name).under(own), Map.of());
    }

    private Map<ConfigKey<?>, ConfigValue> under(Map<ConfigKey<?>, ConfigValue> own) {
        Map<ConfigKey<?>, ConfigValue> merged = new HashMap<>(values);
        if (own.containsKey(ConfigKey.GENERATOR_TYPE)) {
            merged.remove(ConfigKey.GENERATOR);
        }
        merged.putAll(own);
        return merged;
    }

    boolean hasClient(String name) {
        return clients.containsKey(name);
    }

    <T> T get(ConfigKey<T> key) {
        T value = find(key);
        if (value == null) {
            throw new IllegalStateException(key.propertyName() + " has no default");
        }
        return value;
    }

    @SuppressWarnings("unchecked")
    private <T> @Nullable T find(ConfigKey<T> key) {
        ConfigValue setting = values.get(key);
        return setting == null ? key.standard() : (T) setting.value();
    }

    private void check() {
        if (get(ConfigKey.WAIT).compareTo(get(ConfigKey.MAX_WAIT)) > 0) {
            throw misfit(
                    ConfigKey.WAIT,
                    "is longer than " + place(ConfigKey.MAX_WAIT) + "; raise that one or lower this one",
                    ConfigKey.MAX_WAIT);
        }
        if (get(ConfigKey.DEADLINE).compareTo(get(ConfigKey.SERVER_RETENTION)) >= 0) {
            throw misfit(
                    ConfigKey.DEADLINE,
                    "is not shorter than " + place(ConfigKey.SERVER_RETENTION)
                            + ", so an attempt could arrive after the server half has forgotten the ID; lower the deadline or raise the retention",
                    ConfigKey.SERVER_RETENTION);
        }
        if (get(ConfigKey.BUDGET_CAPACITY) > 0 && get(ConfigKey.BUDGET_COST) > get(ConfigKey.BUDGET_CAPACITY)) {
            throw misfit(
                    ConfigKey.BUDGET_COST,
                    "is above " + place(ConfigKey.BUDGET_CAPACITY)
                            + ", so nothing would be retried; lower the cost, or set the capacity to 0 to switch retries off",
                    ConfigKey.BUDGET_CAPACITY);
        }
    }

    IdempotenceIdGenerator generator() {
        return generator;
    }

    private IdempotenceIdGenerator makeGenerator() {
        IdempotenceIdGenerator own = find(ConfigKey.GENERATOR);
        if (own != null) {
            return own;
        }
        String application = find(ConfigKey.GENERATOR_APPLICATION);
        Integer node = find(ConfigKey.GENERATOR_NODE);
        switch (get(ConfigKey.GENERATOR_TYPE)) {
            case "application":
                if (application == null) {
                    throw misfit(
                            ConfigKey.GENERATOR_APPLICATION,
                            "is missing, and " + place(ConfigKey.GENERATOR_TYPE) + " needs it",
                            ConfigKey.GENERATOR_TYPE);
                }
                return IdempotenceIdGenerator.applicationPrefixed(application);
            case "snowflake":
                if (node == null) {
                    throw misfit(
                            ConfigKey.GENERATOR_NODE,
                            "is missing, and " + place(ConfigKey.GENERATOR_TYPE) + " needs it, 0 to 1023",
                            ConfigKey.GENERATOR_TYPE);
                }
                return IdempotenceIdGenerator.snowflake(node);
            default:
                return IdempotenceIdGenerator.uuid();
        }
    }

    /**
     * The exception for two settings that contradict each other. It contains the source of the one that was set, so that a person can find
     * it.
     */
    private IdempotenceConfigException misfit(ConfigKey<?> key, String message, ConfigKey<?> other) {
        ConfigValue given = values.getOrDefault(key, values.get(other));
        String spelling = given == null ? key.propertyName() : given.spelling();
        String source = given == null ? "default" : given.source();
        return new IdempotenceConfigException(
                spelling, source, place(key) + " " + message + (client == null ? "" : ", for client " + client));
    }

    /** A setting with its value and source. */
    private String place(ConfigKey<?> key) {
        ConfigValue given = values.get(key);
        Object value = find(key);
        return key.propertyName()
                + (value == null ? "" : " " + value)
                + (given == null ? (value == null ? "" : " (default)") : " (" + given.source() + ")");
    }
}
