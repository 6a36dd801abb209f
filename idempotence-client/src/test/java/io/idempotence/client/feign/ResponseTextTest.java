package io.idempotence.client.feign;

import static io.idempotence.client.IdempotenceClientEvent.Result.SUCCEEDED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import feign.Client;
import feign.Response;
import java.io.ByteArrayInputStream;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Decoders that read a response as text, through {@link Response.Body#asReader}. */
class ResponseTextTest extends FeignTestBase {
    private final AtomicInteger closed = new AtomicInteger();

    /** A client whose response has {@code text}, and announces {@code announced} bytes. */
    private Client responding(String text, int announced) {
        return (request, options) -> Response.builder()
                .status(200)
                .request(request)
                .headers(Map.of("Content-Length", List.of(Integer.toString(announced))))
                .body(
                        new ByteArrayInputStream(text.getBytes(UTF_8)) {
                            @Override
                            public void close() {
                                closed.incrementAndGet();
                            }
                        },
                        announced)
                .build();
    }

    private String received(String text, int announced) {
        return orders(fast().build(), b -> b.client(responding(text, announced)))
                .create("x");
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 2047, 2048, 2049, 5000})
    void textOfAnyLengthIsWholeAndItsStreamIsClosed(int length) {
        // Each letter has two bytes, so that one that is cut in two would be another.
        String text = "ü".repeat(length);
        assertThat(received(text, 2 * length)).isEqualTo(text);
        assertThat(closed).hasPositiveValue();
        assertEnd(SUCCEEDED, 1, 1);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 7, 8, 4096})
    void textThatIsLongerThanAnnouncedIsWholeToo(int announced) {
        String text = "ü".repeat(4097);
        assertThat(received(text, announced)).isEqualTo(text);
        assertEnd(SUCCEEDED, 1, 1);
    }

    @Test
    void textThatIsShorterThanAnnouncedIsAnUnknownOutcome() {
        assertThatThrownBy(() -> received("paid", 5)).isInstanceOf(FeignOutcomeUnknownException.class);
        assertEnd(UNKNOWN, 3);
    }
}
