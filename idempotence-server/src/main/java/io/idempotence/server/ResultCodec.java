package io.idempotence.server;

import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.function.Function;

/** A codec that turns the result of business code into bytes and back, so that later calls get it. Thread-safe. */
public interface ResultCodec<T> {
    /**
     * Encodes a result. If this throws, the caller gets what it throws, and later calls are refused as result-unavailable.
     *
     * @param result what the work returned
     * @return its bytes
     */
    byte[] encode(T result);

    /**
     * Decodes a result. If this throws an exception or a {@link LinkageError}, the call is refused as result-unavailable, with that as its
     * cause.
     *
     * @param bytes what {@link #encode} returned, perhaps in an older version of the program
     */
    T decode(byte[] bytes);

    /** The codec of text, as UTF-8. */
    static ResultCodec<String> text() {
        return of(text -> text.getBytes(StandardCharsets.UTF_8), bytes -> new String(bytes, StandardCharsets.UTF_8));
    }

    /**
     * A codec of two functions, for example those of a JSON mapper.
     *
     * @param encode result to bytes
     * @param decode bytes to result
     */
    static <T> ResultCodec<T> of(Function<T, byte[]> encode, Function<byte[], T> decode) {
        Objects.requireNonNull(encode, "encode");
        Objects.requireNonNull(decode, "decode");
        return new ResultCodec<>() {
            @Override
            public byte[] encode(T result) {
                return encode.apply(result);
            }

            @Override
            public T decode(byte[] bytes) {
                return decode.apply(bytes);
            }
        };
    }
}
