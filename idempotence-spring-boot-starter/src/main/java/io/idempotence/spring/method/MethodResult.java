package io.idempotence.spring.method;

import io.idempotence.server.ResultCodec;
import java.io.InputStream;
import java.io.Reader;
import java.lang.reflect.Method;
import java.util.Iterator;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Future;
import java.util.function.Supplier;
import java.util.stream.BaseStream;
import org.jspecify.annotations.Nullable;
import org.springframework.core.ReactiveAdapterRegistry;
import org.springframework.core.ResolvableType;

/**
 * The result of a bean method.
 *
 * @param isFuture whether the method returns a future of the result
 * @param isOptional whether the result is in an {@link Optional}
 * @param codec the form in which it is stored
 */
record MethodResult(boolean isFuture, boolean isOptional, ResultCodec<Object> codec) {
    private static final ResultCodec<Object> NOTHING = ResultCodec.of(value -> new byte[0], bytes -> new Object());
    private static final ResultCodec<Object> TEXT =
            ResultCodec.of(value -> ResultCodec.text().encode((String) value), ResultCodec.text()::decode);
    private static final ResultCodec<Object> BYTES = ResultCodec.of(value -> (byte[]) value, bytes -> bytes);

    /** Finds out how a result is stored. Returns null after a fault. */
    static @Nullable MethodResult of(
            Method method, Class<?> type, Supplier<@Nullable JsonResults> json, OperationFaults faults) {
        ResolvableType result = ResolvableType.forMethodReturnType(method, type);
        Class<?> declared = result.resolve(Object.class);
        boolean isFuture = declared == CompletableFuture.class || declared == CompletionStage.class;
        if (isFuture) {
            result = result.getGeneric(0);
        }
        boolean isOptional = result.resolve(Object.class) == Optional.class;
        if (isOptional) {
            result = result.getGeneric(0);
        }
        try {
            return new MethodResult(isFuture, isOptional, codec(result, json));
        } catch (IllegalArgumentException e) {
            faults.add(
                    "its result, " + ResolvableType.forMethodReturnType(method, type) + ", cannot be stored: "
                            + e.getMessage(),
                    "Return a value that JSON can represent, such as a record, or nothing.");
            return null;
        }
    }

    private static ResultCodec<Object> codec(ResolvableType type, Supplier<@Nullable JsonResults> json) {
        if (type.hasUnresolvableGenerics() || type.resolve() == null) {
            throw new IllegalArgumentException("its type is not known");
        }
        Class<?> raw = type.toClass();
        if (raw == void.class || raw == Void.class) {
            return NOTHING;
        }
        if (raw == String.class) {
            return TEXT;
        }
        if (raw == byte[].class) {
            return BYTES;
        }
        if (raw == Object.class) {
            throw new IllegalArgumentException("it may be any object, and JSON does not say which");
        }
        if (isConsumedOnce(raw)) {
            throw new IllegalArgumentException(raw.getSimpleName() + " is not a value");
        }
        JsonResults mapper = json.get();
        if (mapper == null) {
            throw new IllegalArgumentException("the application has no bean, or several, of a Jackson mapper");
        }
        return mapper.codec(type.getType());
    }

    private static boolean isConsumedOnce(Class<?> type) {
        return Future.class.isAssignableFrom(type)
                || BaseStream.class.isAssignableFrom(type)
                || Iterator.class.isAssignableFrom(type)
                || InputStream.class.isAssignableFrom(type)
                || Reader.class.isAssignableFrom(type)
                || Optional.class.isAssignableFrom(type)
                || ReactiveAdapterRegistry.getSharedInstance().getAdapter(type) != null;
    }

    /** The stored part of what the method returned. */
    @Nullable
    Object toStored(@Nullable Object returned) {
        return returned instanceof Optional<?> optional && isOptional ? optional.orElse(null) : returned;
    }

    @Nullable
    Object fromStored(@Nullable Object stored) {
        return isOptional ? Optional.ofNullable(stored) : stored;
    }
}
