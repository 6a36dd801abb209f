package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.DeserializationContext;
import com.fasterxml.jackson.databind.JsonDeserializer;
import io.idempotence.server.ResultCodec;
import java.io.IOException;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import tools.jackson.core.JsonParser;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.ValueDeserializer;
import tools.jackson.databind.json.JsonMapper;

/** Results with a deserializer of the application, which throws what it likes for other JSON than its own. */
class CustomDeserializersTest {
    @com.fasterxml.jackson.databind.annotation.JsonDeserialize(using = OfJackson2.class)
    @tools.jackson.databind.annotation.JsonDeserialize(using = OfJackson3.class)
    record Money(long cents) {}

    static class OfJackson2 extends JsonDeserializer<Money> {
        @Override
        public Money deserialize(com.fasterxml.jackson.core.JsonParser json, DeserializationContext context)
                throws IOException {
            com.fasterxml.jackson.databind.JsonNode node = json.readValueAsTree();
            return new Money(node.get("cents").longValue());
        }
    }

    static class OfJackson3 extends ValueDeserializer<Money> {
        @Override
        public Money deserialize(JsonParser json, tools.jackson.databind.DeserializationContext context) {
            JsonNode node = json.readValueAsTree();
            return new Money(node.get("cents").longValue());
        }
    }

    static Stream<JsonResults> mappers() {
        return Stream.of(
                new Jackson2Results(new com.fasterxml.jackson.databind.ObjectMapper()),
                new Jackson3Results(new JsonMapper()));
    }

    /** The start failed with its exception, which had nothing to do with {@code @Idempotent}. */
    @ParameterizedTest
    @MethodSource("mappers")
    void aDeserializerThatThrowsForAnEmptyObjectIsNoFault(JsonResults mapper) {
        ResultCodec<Object> codec = mapper.codec(Money.class);
        assertThat(codec.decode(codec.encode(new Money(7)))).isEqualTo(new Money(7));
    }
}
