package io.idempotence.spring.method;

import io.idempotence.spring.internal.SpringDurations;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.convert.DurationStyle;
import org.springframework.util.StringValueResolver;

/** The faults found at one method. */
final class OperationFaults {
    private final String where;
    private final StringValueResolver placeholders;
    private final List<OperationFault> all;

    OperationFaults(String where, StringValueResolver placeholders, List<OperationFault> all) {
        this.where = where;
        this.placeholders = placeholders;
        this.all = all;
    }

    void add(String what, String action) {
        all.add(new OperationFault(where, SpringDurations.within(what), action));
    }

    String where() {
        return where;
    }

    <T> @Nullable T atMostOne(String attribute, T[] values) {
        if (values.length > 1) {
            add(attribute + " has " + values.length + " values", "Set one value for " + attribute + ".");
        }
        return values.length == 0 ? null : values[0];
    }

    @Nullable
    Duration duration(String attribute, String text) {
        if (text.isEmpty()) {
            return null;
        }
        String value = text;
        try {
            value = String.valueOf(placeholders.resolveStringValue(text));
            if (Character.isDigit(value.charAt(value.length() - 1))) {
                throw new IllegalArgumentException("it has no unit");
            }
            return DurationStyle.detectAndParse(value);
        } catch (RuntimeException e) {
            add(
                    attribute + " = \"" + text + "\"" + (value.equals(text) ? "" : " is \"" + value + "\", which")
                            + " is not a duration",
                    "Write " + attribute + " with a unit, such as 500ms, 30s, 10m, 24h or 7d.");
            return null;
        }
    }
}
