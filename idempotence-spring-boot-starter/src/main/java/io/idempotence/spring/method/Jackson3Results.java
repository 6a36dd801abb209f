package io.idempotence.spring.method;

import io.idempotence.server.ResultCodec;
import java.lang.reflect.Type;
import tools.jackson.databind.JavaType;
import tools.jackson.databind.ObjectMapper;
import tools.jackson.databind.ObjectReader;
import tools.jackson.databind.ObjectWriter;
import tools.jackson.databind.exc.InvalidDefinitionException;

/** JSON by Jackson 3. */
final class Jackson3Results implements JsonResults {
    private final ObjectMapper mapper;

    Jackson3Results(ObjectMapper mapper) {
        this.mapper = mapper;
    }

    @Override
    public ResultCodec<Object> codec(Type type) {
        JavaType java = mapper.constructType(type);
        ObjectReader reader = mapper.readerFor(java);
        ObjectWriter writer = mapper.writerFor(java);
        try {
            reader.readValue("{}");
        } catch (InvalidDefinitionException e) {
            throw new IllegalArgumentException(e.getOriginalMessage(), e);
        } catch (RuntimeException theTypeIsReadable) {
            // An empty object is no value of it. A deserializer of the application may throw anything.
        }
        return ResultCodec.of(writer::writeValueAsBytes, reader::readValue);
    }
}
