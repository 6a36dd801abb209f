package io.idempotence.client;

import io.idempotence.internal.Spelling;
import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** A reader of settings from the file, the system properties and the environment. A later source overrides an earlier one. */
final class SettingsLoader {
    static final String FILE = "idempotence.properties";
    private static final String PREFIX = "idempotence.client.";
    private static final String ENVIRONMENT_PREFIX = "IDEMPOTENCE_CLIENT_";
    /** What Kubernetes adds to the variables of each container for a service that is called {@code idempotence-client}. */
    private static final Pattern OF_A_SERVICE = Pattern.compile("(\\w+_)?(SERVICE_HOST|(SERVICE_)?PORT(_\\w+)?)");

    private static final String CLIENTS = "clients.";

    /** The name of a client may be in brackets, as YAML needs for some characters. */
    private static final String CLIENTS_IN_BRACKETS = "clients[";

    private final Map<ClientSetting<?>, SettingValue> values;
    private final Map<String, Map<ClientSetting<?>, SettingValue>> clients;

    /**
     * @param values receives the common settings
     * @param clients receives the settings of clients and methods, by name
     */
    SettingsLoader(
            Map<ClientSetting<?>, SettingValue> values, Map<String, Map<ClientSetting<?>, SettingValue>> clients) {
        this.values = values;
        this.clients = clients;
    }

    /** @throws IdempotenceClientConfigException if a setting is unknown or malformed */
    void load(ClassLoader classes, Properties system, Map<String, String> environment) {
        file(classes);
        properties(system, "system property", SettingsLoader::inOurName);
        environment(environment);
    }

    /**
     * Takes one setting from a source with relaxed spellings, such as Spring's environment.
     *
     * @param spelling with the prefix, as a property or as a variable of the environment
     * @throws IdempotenceClientConfigException if the setting is unknown or malformed
     */
    void relaxed(String spelling, String text, String source) {
        if (spelling.startsWith(ENVIRONMENT_PREFIX)) {
            variable(spelling, text, source);
        } else if (spelling.regionMatches(true, 0, PREFIX, 0, PREFIX.length())) {
            property(spelling, text, source, ClientSetting::relaxed);
        } else {
            throw new IdempotenceClientConfigException(spelling, source, "unknown; settings begin with " + PREFIX);
        }
    }

    private void file(ClassLoader classes) {
        URL url = classes.getResource(FILE);
        if (url == null) {
            return;
        }
        Properties properties = new Properties();
        try (InputStream in = url.openStream()) {
            properties.load(in);
        } catch (IOException | IllegalArgumentException e) {
            throw new IdempotenceClientConfigException(
                    FILE, url.toString(), "cannot be parsed; write it as a Java properties file", e);
        }
        properties(properties, url.toString(), key -> !ofAnotherProgram(key));
    }

    private void properties(Properties properties, String source, Predicate<String> isOurs) {
        for (String key : properties.stringPropertyNames()) {
            if (isOfStarter(key)) {
                continue;
            }
            if (key.startsWith(PREFIX)) {
                property(key, properties.getProperty(key), source, UnaryOperator.identity());
            } else if (isOurs.test(key)) {
                throw new IdempotenceClientConfigException(key, source, "unknown; settings begin with " + PREFIX);
            }
        }
    }

    /** Whether a key is one of these settings. Those of the other half, of the Spring Boot starter and of tools are not. */
    private static boolean inOurName(String key) {
        String lower = key.toLowerCase(Locale.ROOT);
        return lower.matches("idempotence[._-].*") && !ofAnotherProgram(lower);
    }

    /** Whether this is the one setting of the client half that only the Spring Boot starter has. */
    private static boolean isOfStarter(String name) {
        return name.matches("(?i)idempotence[._]client[._]rest[-_]?clients");
    }

    private static boolean ofAnotherProgram(String key) {
        return key.matches("idempotence\\.((server|form|transactions|console|cli|test)\\..*|log-correlation)");
    }

    /** @param form gives two spellings of one key the same form */
    private void property(String spelling, String text, String source, UnaryOperator<String> form) {
        String name = spelling.substring(PREFIX.length());
        if (name.startsWith(CLIENTS) || name.startsWith(CLIENTS_IN_BRACKETS)) {
            String rest = name.substring(name.startsWith(CLIENTS) ? CLIENTS.length() : CLIENTS.length() - 1);
            for (ClientSetting<?> setting : ClientSetting.LOADABLE) {
                String client = clientOf(rest, setting, form);
                if (client != null) {
                    put(clients.computeIfAbsent(client, absent -> new HashMap<>()), setting, text, spelling, source);
                    return;
                }
            }
            throw new IdempotenceClientConfigException(
                    spelling,
                    source,
                    "unknown; write " + PREFIX + "clients.<name>.<key>, where <key> is one of " + names());
        }
        for (ClientSetting<?> setting : ClientSetting.LOADABLE) {
            if (form.apply(setting.propertyName()).equals(form.apply(name))) {
                put(values, setting, text, spelling, source);
                return;
            }
        }
        throw new IdempotenceClientConfigException(spelling, source, "unknown; " + nearest(name, PREFIX, names()));
    }

    /** The client in {@code <client>.<key>}, without brackets; null if this is another key. A client's name may contain dots. */
    private static @Nullable String clientOf(String rest, ClientSetting<?> setting, UnaryOperator<String> form) {
        int dot = rest.length();
        for (long words = setting.propertyName().chars().filter(c -> c == '.').count();
                words >= 0 && dot > 0;
                words--) {
            dot = rest.lastIndexOf('.', dot - 1);
        }
        if (dot <= 0 || !form.apply(setting.propertyName()).equals(form.apply(rest.substring(dot + 1)))) {
            return null;
        }
        String client = rest.substring(0, dot);
        return client.startsWith("[") && client.endsWith("]") ? client.substring(1, client.length() - 1) : client;
    }

    /** Reads the environment. All programs of a container share it, so only variables under this prefix are checked. */
    private void environment(Map<String, String> environment) {
        for (Map.Entry<String, String> variable : new TreeMap<>(environment).entrySet()) {
            String name = variable.getKey();
            if (isOfStarter(name)) {
                continue;
            }
            if (name.startsWith(ENVIRONMENT_PREFIX)) {
                variable(name, variable.getValue(), "environment variable");
            } else if (inOurSpelling(name).startsWith(ENVIRONMENT_PREFIX)) {
                throw new IdempotenceClientConfigException(
                        name, "environment variable", "unknown; settings begin with " + ENVIRONMENT_PREFIX);
            }
        }
    }

    /** A variable with the separators and the case that it should have. Containers also have variables with dots and hyphens. */
    private static String inOurSpelling(String variable) {
        return variable.toUpperCase(Locale.ROOT).replace('.', '_').replace('-', '_') + "_";
    }

    private void variable(String spelling, String text, String source) {
        String name = spelling.substring(ENVIRONMENT_PREFIX.length());
        for (ClientSetting<?> setting : ClientSetting.LOADABLE) {
            if (setting.isVariable(name)) {
                put(values, setting, text, spelling, source);
                return;
            }
        }
        if (OF_A_SERVICE.matcher(name).matches()) {
            return;
        }
        String fix = name.startsWith("CLIENTS_")
                ? "settings of one client are written " + PREFIX + CLIENTS + "<name>.<key>, as a system property or in "
                        + FILE
                : nearest(
                        name,
                        ENVIRONMENT_PREFIX,
                        ClientSetting.LOADABLE.stream()
                                .map(ClientSetting::environmentName)
                                .toList());
        throw new IdempotenceClientConfigException(spelling, source, "unknown; " + fix);
    }

    private static <T> void put(
            Map<ClientSetting<?>, SettingValue> values,
            ClientSetting<T> setting,
            String text,
            String spelling,
            String source) {
        T value = setting.parse(text, spelling, source);
        values.put(setting, new SettingValue(value, spelling, source));
    }

    private static List<String> names() {
        return ClientSetting.LOADABLE.stream().map(ClientSetting::propertyName).toList();
    }

    private static String nearest(String name, String prefix, List<String> allowed) {
        String nearest = Spelling.nearest(name, allowed);
        return Spelling.distance(name, nearest) <= 3
                ? "did you mean " + prefix + nearest + "?"
                : "allowed after " + prefix + " are " + allowed;
    }
}
