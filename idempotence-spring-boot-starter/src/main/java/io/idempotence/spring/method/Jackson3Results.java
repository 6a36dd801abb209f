package io.idempotence.spring.method;

import io.idempotence.server.ResultCodec;
import java.lang.reflect.Type;
import tools.jackson.databind.JavaType;
import tools.jackson.databind.ObjectMapper;
import tools.jackson.databind.ObjectReader;
import tools.jackson.databind.ObjectWriter;
import tools.jackson.databind.cfg.DateTimeFeature;
import tools.jackson.databind.exc.InvalidDefinitionException;

/** The JSON codec over Jackson 3. */
final class Jackson3Results implements JsonResults {
    private final ObjectMapper mapper;

    Jackson3Results(ObjectMapper mapper) {
        this.mapper = mapper;
    }

    @Override
    public ResultCodec<Object> codec(Type type) {
        JavaType java = mapper.constructType(type);
        // A time comes back in its own zone.
        ObjectReader reader = mapper.readerFor(java).without(DateTimeFeature.ADJUST_DATES_TO_CONTEXT_TIME_ZONE);
        ObjectWriter writer = mapper.writerFor(java)
                .without(DateTimeFeature.WRITE_DATES_AS_TIMESTAMPS)
                .with(DateTimeFeature.WRITE_DATES_WITH_ZONE_ID);
        checkReadable(java);
        return ResultCodec.of(writer::writeValueAsBytes, reader::readValue);
    }

    private void checkReadable(JavaType java) {
        try {
            mapper.readerFor(java).readValue("{}");
        } catch (InvalidDefinitionException e) {
            throw new IllegalArgumentException(e.getOriginalMessage(), e);
        } catch (RuntimeException theTypeIsReadable) {
            // An empty object is not a value of it. A deserializer of the application may throw anything.
        }
        if (java.isContainerType()) {
            checkReadable(java.getContentType());
        }
    }
}
