package io.idempotence.spring.server;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.RecordComponent;
import java.net.URL;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.bind.DataObjectPropertyName;
import org.springframework.boot.context.properties.source.MapConfigurationPropertySource;
import org.springframework.core.ResolvableType;
import org.springframework.util.ClassUtils;

/** Completion in the IDE offers every property of the server half as the application reads it. */
class ServerMetadataTest {
    private static final List<String> CLASSES = List.of(
            "io.idempotence.spring.server.IdempotenceServerProperties",
            "io.idempotence.spring.method.IdempotenceTransactionProperties",
            "io.idempotence.spring.form.FormProperties",
            "io.idempotence.spring.actuate.ConsoleProperties");

    private final Map<String, JsonNode> documented = new TreeMap<>();
    private final Map<String, RecordComponent> known = new TreeMap<>();

    ServerMetadataTest() throws IOException, ClassNotFoundException {
        for (URL url : Collections.list(
                getClass().getClassLoader().getResources("META-INF/spring-configuration-metadata.json"))) {
            for (JsonNode property : new ObjectMapper().readTree(url).get("properties")) {
                String name = property.get("name").asText();
                if (CLASSES.contains(owner(property))) {
                    documented.put(name, property);
                }
            }
        }
        for (String type : CLASSES) {
            addAll(prefix(type), Class.forName(type));
        }
    }

    private static String owner(JsonNode property) {
        JsonNode owner = property.get("sourceType");
        return owner == null ? "" : owner.asText().replaceAll("\\$.*", "");
    }

    private static String prefix(String type) throws ClassNotFoundException {
        return Class.forName(type).getAnnotation(ConfigurationProperties.class).prefix();
    }

    private void addAll(String prefix, Class<?> type) {
        for (RecordComponent component : type.getRecordComponents()) {
            String name = prefix + "." + DataObjectPropertyName.toDashedForm(component.getName());
            if (component.getType().isRecord()) {
                addAll(name, component.getType());
            } else {
                known.put(name, component);
            }
        }
    }

    @Test
    void everyPropertyIsListedWithADescriptionAndTheTypeThatItIsReadAs() {
        assertThat(documented.keySet()).isEqualTo(new TreeSet<>(known.keySet())).hasSizeGreaterThan(40);
        documented.forEach((name, property) -> {
            assertThat(property.path("description").asText())
                    .as(name)
                    .endsWith(".")
                    .hasSizeGreaterThan(10);
            ResolvableType type =
                    ResolvableType.forMethodReturnType(known.get(name).getAccessor());
            assertThat(property.get("type").asText())
                    .as(name)
                    .isEqualTo(
                            type.hasGenerics()
                                    ? type.toString().replace(", ", ",").replaceAll("\\?", "java.lang.Object")
                                    : ClassUtils.resolvePrimitiveIfNecessary(type.toClass())
                                            .getName());
        });
    }

    @Test
    void aDefaultIsListedWhereThereIsOneAndIsReadAsThat() throws Exception {
        for (String type : CLASSES) {
            String prefix = prefix(type);
            Object standard = read(type, prefix, Map.of());
            for (String name : known.keySet()) {
                if (name.startsWith(prefix + ".")) {
                    JsonNode value = documented.get(name).get("defaultValue");
                    Object expected = value(standard, name.substring(prefix.length() + 1));
                    if (value == null) {
                        assertThat(isNothing(expected))
                                .as("%s is %s", name, expected)
                                .isTrue();
                    } else {
                        assertThat(isNothing(expected))
                                .as("%s is %s", name, expected)
                                .isFalse();
                        assertThat(read(type, prefix, Map.of(name, text(value))))
                                .as(name)
                                .isEqualTo(standard);
                    }
                }
            }
        }
    }

    /** The IDE completes the values of an enum, if it can see them. */
    @Test
    void valuesOfEnumsAreVisible() {
        List<String> enums = new ArrayList<>();
        known.forEach((name, component) -> {
            if (component.getType().isEnum()) {
                enums.add(name);
                for (Class<?> type = component.getType(); type != null; type = type.getEnclosingClass()) {
                    assertThat(Modifier.isPublic(type.getModifiers())).as(name).isTrue();
                }
            }
        });
        assertThat(enums)
                .contains(
                        "idempotence.server.storage", "idempotence.server.scope", "idempotence.server.body-comparison")
                .contains("idempotence.server.policy.failure-rule", "idempotence.server.policy.on-abandoned");
    }

    private static Object read(String type, String prefix, Map<String, String> properties) throws Exception {
        return new Binder(new MapConfigurationPropertySource(properties))
                .bindOrCreate(prefix, Bindable.of(Class.forName(type)));
    }

    private static Object value(Object properties, String path) throws ReflectiveOperationException {
        Object value = properties;
        for (String name : path.split("\\.")) {
            for (RecordComponent component : value.getClass().getRecordComponents()) {
                if (DataObjectPropertyName.toDashedForm(component.getName()).equals(name)) {
                    Method accessor = component.getAccessor();
                    accessor.setAccessible(true);
                    value = accessor.invoke(value);
                    break;
                }
            }
        }
        return value;
    }

    private static boolean isNothing(Object value) {
        return value == null
                || (value instanceof Collection<?> list && list.isEmpty())
                || (value instanceof Map<?, ?> map && map.isEmpty());
    }

    private static String text(JsonNode value) {
        if (!value.isArray()) {
            return value.asText();
        }
        List<String> items = new ArrayList<>();
        value.forEach(item -> items.add(item.asText()));
        return String.join(",", items);
    }
}
