package io.idempotence.spring.method;

import java.util.List;
import java.util.Map;

/**
 * An operation with {@code @Idempotent}, as operators see it.
 *
 * @param kind whether requests or calls of a bean method run it
 * @param methods the HTTP methods, sorted; empty if all, and for a bean method
 * @param paths the path patterns of a handler, sorted; empty for a bean method
 * @param handler class and method
 * @param settings the settings by the names of the annotation's attributes, in their order
 */
public record IdempotentOperation(
        Kind kind, List<String> methods, List<String> paths, String handler, Map<String, Setting> settings) {
    /** The cause of a run of an operation. */
    public enum Kind {
        /** Requests. */
        HANDLER,
        /** Calls of a bean method. */
        METHOD
    }

    /**
     * A setting.
     *
     * @param value its value. If the filters of a handler differ, each value with its requests: {@code 1d for POST /a; 7d for POST /b}
     * @param origin where the value comes from
     */
    public record Setting(String value, Origin origin) {}

    /** The source of a setting. */
    public enum Origin {
        /** An attribute of the annotation. */
        ANNOTATION,
        /** A property of the application. */
        PROPERTY,
        /** A bean of the application. */
        BEAN,
        /** The default. */
        DEFAULT
    }
}
