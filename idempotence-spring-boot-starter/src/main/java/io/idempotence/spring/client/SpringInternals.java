package io.idempotence.spring.client;

import java.lang.reflect.Field;
import org.jspecify.annotations.Nullable;
import org.springframework.util.ReflectionUtils;

/** Private fields of the HTTP clients of Spring and Spring Cloud and of Feign's builders, read by reflection. */
final class SpringInternals {
    private SpringInternals() {}

    /** The value of a field of {@code owner} that every known version has. */
    static Object required(Object owner, String name) {
        Object value = field(owner, name);
        if (value == null) {
            throw missing(owner, name);
        }
        return value;
    }

    /** The value of a field of {@code owner} that every known version has, but that need not be set. */
    static @Nullable Object optional(Object owner, String name) {
        if (ReflectionUtils.findField(owner.getClass(), name) == null) {
            throw missing(owner, name);
        }
        return field(owner, name);
    }

    private static IllegalStateException missing(Object owner, String name) {
        return new IllegalStateException("this version of Spring, Spring Cloud or Feign has no "
                + owner.getClass().getName() + "." + name + "; use one that docs/spring.md lists");
    }

    /** The value of a field of {@code owner}; null if it has no such field. */
    static @Nullable Object field(Object owner, String name) {
        Field field = ReflectionUtils.findField(owner.getClass(), name);
        if (field == null) {
            return null;
        }
        ReflectionUtils.makeAccessible(field);
        return ReflectionUtils.getField(field, owner);
    }
}
