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
    private final Map<ClientSetting<?>, SettingValue> values;
    private final Map<String, Map<ClientSetting<?>, SettingValue>> clients;
    private final IdempotenceIdGenerator generator;

    /** @throws IdempotenceClientConfigException if settings contradict each other, in common, for a client or for a method */
    LayeredSettings(
            Map<ClientSetting<?>, SettingValue> values, Map<String, Map<ClientSetting<?>, SettingValue>> clients) {
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
            Map<ClientSetting<?>, SettingValue> values,
            Map<String, Map<ClientSetting<?>, SettingValue>> clients) {
        this.client = client;
        this.values = Map.copyOf(values);
        this.clients = clients;
        check();
        this.generator = makeGenerator();
    }

    /** Copies these settings to mutable maps. */
    void copyTo(
            Map<ClientSetting<?>, SettingValue> common, Map<String, Map<ClientSetting<?>, SettingValue>> ofClients) {
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
        Map<ClientSetting<?>, SettingValue> own = clients.getOrDefault(qualified, Map.of());
        own.forEach((setting, given) -> {
            if (setting.propertyName().startsWith("budget.")) {
                throw new IdempotenceClientConfigException(
                        given.spelling(),
                        given.source(),
                        "a budget belongs to a client, not to one of its methods; set it for the client");
            }
        });
        return new LayeredSettings(qualified, forClient(name).under(own), Map.of());
    }

    private Map<ClientSetting<?>, SettingValue> under(Map<ClientSetting<?>, SettingValue> own) {
        Map<ClientSetting<?>, SettingValue> merged = new HashMap<>(values);
        if (own.containsKey(ClientSetting.GENERATOR_TYPE)) {
            merged.remove(ClientSetting.GENERATOR);
        }
        merged.putAll(own);
        return merged;
    }

    boolean hasClient(String name) {
        return clients.containsKey(name);
    }

    <T> T get(ClientSetting<T> setting) {
        T value = find(setting);
        if (value == null) {
            throw new IllegalStateException(setting.propertyName() + " has no default");
        }
        return value;
    }

    @SuppressWarnings("unchecked")
    private <T> @Nullable T find(ClientSetting<T> setting) {
        SettingValue given = values.get(setting);
        return given == null ? setting.standard() : (T) given.value();
    }

    private void check() {
        if (get(ClientSetting.WAIT).compareTo(get(ClientSetting.MAX_WAIT)) > 0) {
            throw misfit(
                    ClientSetting.WAIT,
                    "is longer than " + place(ClientSetting.MAX_WAIT) + "; raise that one or lower this one",
                    ClientSetting.MAX_WAIT);
        }
        if (get(ClientSetting.DEADLINE).compareTo(get(ClientSetting.SERVER_RETENTION)) >= 0) {
            throw misfit(
                    ClientSetting.DEADLINE,
                    "is not shorter than " + place(ClientSetting.SERVER_RETENTION)
                            + ", so an attempt could arrive after the server half has forgotten the ID; lower the deadline or raise the retention",
                    ClientSetting.SERVER_RETENTION);
        }
        if (get(ClientSetting.BUDGET_CAPACITY) > 0
                && get(ClientSetting.BUDGET_COST) > get(ClientSetting.BUDGET_CAPACITY)) {
            throw misfit(
                    ClientSetting.BUDGET_COST,
                    "is above " + place(ClientSetting.BUDGET_CAPACITY)
                            + ", so nothing would be retried; lower the cost, or set the capacity to 0 to switch retries off",
                    ClientSetting.BUDGET_CAPACITY);
        }
    }

    IdempotenceIdGenerator generator() {
        return generator;
    }

    private IdempotenceIdGenerator makeGenerator() {
        IdempotenceIdGenerator own = find(ClientSetting.GENERATOR);
        if (own != null) {
            return own;
        }
        String application = find(ClientSetting.GENERATOR_APPLICATION);
        Integer node = find(ClientSetting.GENERATOR_NODE);
        switch (get(ClientSetting.GENERATOR_TYPE)) {
            case "application":
                if (application == null) {
                    throw misfit(
                            ClientSetting.GENERATOR_APPLICATION,
                            "is missing, and " + place(ClientSetting.GENERATOR_TYPE) + " needs it",
                            ClientSetting.GENERATOR_TYPE);
                }
                return IdempotenceIdGenerator.applicationPrefixed(application);
            case "snowflake":
                if (node == null) {
                    throw misfit(
                            ClientSetting.GENERATOR_NODE,
                            "is missing, and " + place(ClientSetting.GENERATOR_TYPE) + " needs it, 0 to 1023",
                            ClientSetting.GENERATOR_TYPE);
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
    private IdempotenceClientConfigException misfit(ClientSetting<?> setting, String message, ClientSetting<?> other) {
        SettingValue given = values.getOrDefault(setting, values.get(other));
        String spelling = given == null ? setting.propertyName() : given.spelling();
        String source = given == null ? "default" : given.source();
        return new IdempotenceClientConfigException(
                spelling, source, place(setting) + " " + message + (client == null ? "" : ", for client " + client));
    }

    /** A setting with its value and source. */
    private String place(ClientSetting<?> setting) {
        SettingValue given = values.get(setting);
        Object value = find(setting);
        return setting.propertyName()
                + (value == null ? "" : " " + value)
                + (given == null ? (value == null ? "" : " (default)") : " (" + given.source() + ")");
    }
}
