package io.idempotence.client.feign;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import feign.FeignException;
import feign.Request;
import feign.RequestTemplate;
import feign.codec.DecodeException;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.feign.TestServer.Reply;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** {@link IdempotentFeign#idOf}: the ID of the call that ended in an exception. */
class ExceptionIdTest extends FeignTestBase {
    private FeignException endOf(Orders orders) {
        return catchThrowableOfType(FeignException.class, () -> orders.create("x"));
    }

    /** The call was executed. Another client, which can decode the response, gets it again. */
    @Test
    void responseThatCouldNotBeDecodedIsAskedForAgainUnderTheIdOfItsException() {
        FeignException unreadable = endOf(orders(
                fast().build(),
                b -> b.decoder((response, type) -> {
                    throw new IllegalStateException("bad json");
                })));
        assertThat(unreadable).isInstanceOf(DecodeException.class);
        IdempotenceId id = IdempotentFeign.idOf(unreadable).orElseThrow();
        assertThat(events.get(0).id()).hasValue(id);
        assertThat(IdempotenceScope.resume(id, Instant.now(), () -> orders().create("x")))
                .isEqualTo("ok");
        assertThat(server.ids()).containsExactly("\"" + id + "\"", "\"" + id + "\"");
    }

    @ParameterizedTest
    @ValueSource(ints = {404, 503, 504})
    void exceptionOfAnErrorStatusHasTheId(int status) {
        server.respond(Reply.status(status), Reply.status(status), Reply.status(status));
        assertThat(IdempotentFeign.idOf(endOf(orders())))
                .isPresent()
                .isEqualTo(events.get(0).id());
    }

    @Test
    void exceptionOfACallThatWasNotSentHasTheIdAndThatOfACallWithoutOneHasNone() {
        Orders refused = refused(fast().build());
        assertThat(IdempotentFeign.idOf(endOf(refused)))
                .isPresent()
                .isEqualTo(events.get(0).id());
        FeignException without = catchThrowableOfType(FeignException.class, () -> refused.unprotected("x"));
        assertThat(IdempotentFeign.idOf(without)).isEmpty();
        assertThat(IdempotentFeign.idOf(new FeignException(500, "without a request") {}))
                .isEmpty();
    }

    /** The exception of a client that this was not installed on. */
    @Test
    void exceptionOfARequestWithAHeaderOfAnotherFormHasNoId() {
        Request foreign = Request.create(
                Request.HttpMethod.POST,
                "http://127.0.0.1/orders",
                Map.of("Idempotency-Key", List.of("\"half quoted")),
                new byte[0],
                StandardCharsets.UTF_8,
                new RequestTemplate());
        FeignException end = new FeignException.NotFound("404", foreign, null, Map.of());
        assertThat(IdempotentFeign.idOf(end)).isEmpty();
    }
}
