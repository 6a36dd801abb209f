package io.idempotence.client.feign;

import java.lang.reflect.Field;
import org.jspecify.annotations.Nullable;

/** What Feign has and does not show. */
final class FeignField {
    private FeignField() {}

    /**
     * The value of a field.
     *
     * @param from the class that declares it, or one below
     * @throws ReflectiveOperationException if this version of Feign has no such field, or it cannot be looked at
     */
    static @Nullable Object of(Object owner, Class<?> from, String name) throws ReflectiveOperationException {
        for (Class<?> type = from; type != null; type = type.getSuperclass()) {
            for (Field field : type.getDeclaredFields()) {
                if (field.getName().equals(name) && field.trySetAccessible()) {
                    return field.get(owner);
                }
            }
        }
        throw new NoSuchFieldException(from.getName() + "." + name);
    }
}
