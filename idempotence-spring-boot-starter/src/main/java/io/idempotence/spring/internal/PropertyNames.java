package io.idempotence.spring.internal;

import io.idempotence.internal.Spelling;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DataObjectPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.util.ClassUtils;

/** The names of the properties {@code idempotence.*}, except those below {@code idempotence.client}, which contain names of clients. */
final class PropertyNames {
    static final ConfigurationPropertyName ROOT = ConfigurationPropertyName.of("idempotence");
    static final ConfigurationPropertyName CLIENT = ROOT.append("client");

    /** The groups of the operator's tool and of the build's tests, which a shared file may contain. */
    private static final List<ConfigurationPropertyName> OF_OTHER_PROGRAMS =
            List.of(ROOT.append("cli"), ROOT.append("test"));

    /** In packages that depend on this one. */
    private static final List<String> TYPES = List.of(
            "io.idempotence.spring.server.IdempotenceServerProperties",
            "io.idempotence.spring.method.IdempotenceTransactionProperties",
            "io.idempotence.spring.form.FormProperties",
            "io.idempotence.spring.actuate.ConsoleProperties");

    private final List<String> groups = new ArrayList<>(List.of(CLIENT.toString()));
    private final List<KnownProperty> all = new ArrayList<>(
            List.of(new KnownProperty(ConfigurationPropertyName.of("idempotence.log-correlation"), false)));

    /** @param hasItems whether the items of a list, or the keys of a map, follow */
    private record KnownProperty(ConfigurationPropertyName name, boolean hasItems) {
        boolean is(ConfigurationPropertyName other) {
            return name.equals(other) || (hasItems && name.isAncestorOf(other));
        }
    }

    PropertyNames() {
        for (String name : TYPES) {
            Class<?> type = ClassUtils.resolveClassName(name, PropertyNames.class.getClassLoader());
            String prefix = Objects.requireNonNull(type.getAnnotation(ConfigurationProperties.class))
                    .prefix();
            groups.add(prefix);
            addNames(prefix, type);
        }
    }

    private void addNames(String prefix, Class<?> type) {
        for (var component : type.getRecordComponents()) {
            String name = prefix + "." + DataObjectPropertyName.toDashedForm(component.getName());
            if (component.getType().isRecord()) {
                addNames(name, component.getType());
            } else {
                all.add(new KnownProperty(
                        ConfigurationPropertyName.of(name),
                        Collection.class.isAssignableFrom(component.getType())
                                || Map.class.isAssignableFrom(component.getType())));
            }
        }
    }

    /** Whether there is such a property. An empty group in YAML is a property without a value. */
    boolean isKnown(ConfigurationProperty property) {
        ConfigurationPropertyName name = property.getName();
        return CLIENT.isAncestorOf(name)
                || OF_OTHER_PROGRAMS.stream().anyMatch(group -> group.isAncestorOf(name))
                || all.stream().anyMatch(known -> known.is(name))
                || (isGroup(name) && String.valueOf(property.getValue()).isBlank());
    }

    private boolean isGroup(ConfigurationPropertyName name) {
        return name.equals(CLIENT) || all.stream().anyMatch(known -> name.isAncestorOf(known.name()));
    }

    /** Whether only the first part behind {@code idempotence} is known. */
    boolean isInGroup(ConfigurationPropertyName name) {
        return name.getNumberOfElements() > 2 && groups.contains(name.chop(2).toString());
    }

    /** The name that is most like an unknown one. */
    String nearest(ConfigurationPropertyName name) {
        if (name.getNumberOfElements() > 2 && !isInGroup(name)) {
            String group = Spelling.nearest(name.chop(2).toString(), groups);
            ConfigurationPropertyName moved =
                    ConfigurationPropertyName.of(group).append(name.subName(2).toString());
            return group.equals(CLIENT.toString()) ? moved.toString() : nearest(moved);
        }
        return Spelling.nearest(
                name.toString(),
                all.stream().map(known -> known.name().toString()).toList());
    }

    /** A property with its value and its place. A value that may be secret, or an address with a password, is left out. */
    static String described(ConfigurationProperty property) {
        String name = property.getName().toString();
        String found = String.valueOf(property.getValue());
        boolean maybeSecret =
                name.toLowerCase(Locale.ROOT).matches(".*(password|secret|token|credential).*") || found.contains("@");
        String value = maybeSecret ? "" : " = '" + found + "'";
        return name + value + (property.getOrigin() == null ? "" : " (" + property.getOrigin() + ")");
    }
}
