package io.idempotence.spring.method;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JavaType;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.ObjectWriter;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.exc.InvalidDefinitionException;
import io.idempotence.server.ResultCodec;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Type;

/** The JSON codec over Jackson 2. */
final class Jackson2Results implements JsonResults {
    private final ObjectMapper mapper;

    Jackson2Results(ObjectMapper mapper) {
        this.mapper = mapper;
    }

    @Override
    public ResultCodec<Object> codec(Type type) {
        JavaType java = mapper.constructType(type);
        // A time comes back in its own zone.
        ObjectReader reader = mapper.readerFor(java).without(DeserializationFeature.ADJUST_DATES_TO_CONTEXT_TIME_ZONE);
        ObjectWriter writer = mapper.writerFor(java)
                .without(SerializationFeature.WRITE_DATES_AS_TIMESTAMPS)
                .with(SerializationFeature.WRITE_DATES_WITH_ZONE_ID);
        checkReadable(java);
        return ResultCodec.of(
                value -> {
                    try {
                        return writer.writeValueAsBytes(value);
                    } catch (JsonProcessingException e) {
                        throw new UncheckedIOException(e);
                    }
                },
                bytes -> {
                    try {
                        return reader.readValue(bytes);
                    } catch (IOException e) {
                        throw new UncheckedIOException(e);
                    }
                });
    }

    private void checkReadable(JavaType java) {
        try {
            mapper.readerFor(java).readValue("{}");
        } catch (InvalidDefinitionException e) {
            throw new IllegalArgumentException(e.getOriginalMessage(), e);
        } catch (JsonProcessingException | RuntimeException theTypeIsReadable) {
            // An empty object is not a value of it. A deserializer of the application may throw anything.
        }
        if (java.isContainerType()) {
            checkReadable(java.getContentType());
        }
    }
}
