package io.idempotence.spring.server;

import java.time.Duration;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** A fault in the set-up of the provider half, which fails the start with a description and an action. */
final class ServerSetUpException extends RuntimeException {
    private static final long serialVersionUID = 1L;
    private static final Pattern ISO_DURATION = Pattern.compile("\\bP(?:T?\\d[\\dTHMS.]*)");

    private final String action;
    private final @Nullable String property;
    private final String value;

    private ServerSetUpException(
            @Nullable String property, String value, String description, String action, @Nullable Throwable cause) {
        super(description, cause);
        this.property = property;
        this.value = value;
        this.action = action;
    }

    static ServerSetUpException of(String description, String action) {
        return new ServerSetUpException(null, "", description, action, null);
    }

    static ServerSetUpException of(String description, String action, Throwable cause) {
        return new ServerSetUpException(null, "", description, action, cause);
    }

    /**
     * The value of a property is not allowed.
     *
     * @param name the property below {@code idempotence.server}
     * @param fault what is not allowed, and what is
     */
    static ServerSetUpException ofProperty(String name, Object value, String fault, Throwable cause) {
        String property = IdempotenceServerProperties.PREFIX + "." + name;
        String inUnits = ISO_DURATION.matcher(fault).replaceAll(found -> inUnits(Duration.parse(found.group())));
        return new ServerSetUpException(
                property, value.toString(), inUnits, "Change the value of " + property + ".", cause);
    }

    /** A duration as Spring Boot writes it. */
    private static String inUnits(Duration duration) {
        long millis = duration.toMillis();
        if (millis % 1_000 != 0) {
            return millis + "ms";
        }
        long seconds = millis / 1_000;
        if (seconds % 60 != 0 || seconds == 0) {
            return seconds + "s";
        }
        return seconds % 3_600 == 0 ? seconds / 3_600 + "h" : seconds / 60 + "m";
    }

    String action() {
        return action;
    }

    /** The name of the property at fault, or null. */
    @Nullable
    String property() {
        return property;
    }

    String value() {
        return value;
    }
}
