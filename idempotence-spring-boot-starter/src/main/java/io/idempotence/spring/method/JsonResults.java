package io.idempotence.spring.method;

import io.idempotence.server.ResultCodec;
import java.lang.reflect.Type;

/** The application's JSON mapper, of Jackson 2 or 3. */
interface JsonResults {
    /**
     * The codec of a type.
     *
     * @throws IllegalArgumentException if the mapper cannot read the type
     */
    ResultCodec<Object> codec(Type type);
}
