package io.idempotence.client.feign;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import feign.Feign;
import feign.FeignException;
import feign.Request;
import feign.RequestInterceptor;
import feign.RequestTemplate;
import feign.RetryableException;
import feign.codec.EncodeException;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceScope;
import java.net.ConnectException;
import java.net.SocketTimeoutException;
import java.time.Instant;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Calls that are repeated under their ID. Their outcome stays unknown until a response settles it. */
class ResumedCallTest extends FeignTestBase {
    private static final IdempotenceId JOB = IdempotenceId.of("job-1");

    @Test
    void scopeRemembersThatItsCallEndedInDoubt() {
        Orders orders = orders(
                fast().maxAttempts(1).build(),
                b -> b.client(new LosingClient(new SocketTimeoutException(), new ConnectException())));
        IdempotenceScope.with(JOB, () -> {
            FeignOutcomeUnknownException first =
                    catchThrowableOfType(FeignOutcomeUnknownException.class, () -> orders.create("x"));
            FeignOutcomeUnknownException second =
                    catchThrowableOfType(FeignOutcomeUnknownException.class, () -> orders.create("x"));
            assertThat(second.firstSentAt()).isEqualTo(first.firstSentAt());
        });
        // Another scope does not contain it.
        Orders refused = refused(fast().maxAttempts(1).build());
        assertThatThrownBy(() -> IdempotenceScope.with(JOB, () -> refused.create("x")))
                .isExactlyInstanceOf(RetryableException.class);
    }

    /** The scope's doubt is about another ID. */
    @Test
    void callWithAnOwnIdThatThisSideCannotMakeLeavesItsScopeAlone() {
        Orders losing = orders(
                fast().build(),
                b -> b.client((request, options) -> {
                    throw new SocketTimeoutException();
                }));
        Orders failing = orders(
                fast().build(),
                b -> b.requestInterceptor(template -> {
                    throw new EncodeException("cannot be written");
                }));
        IdempotenceScope.with(JOB, () -> {
            assertThatThrownBy(() -> losing.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
            assertThatThrownBy(() -> failing.createAs("own")).isInstanceOf(EncodeException.class);
        });
    }

    static Stream<UnaryOperator<Feign.Builder>> whatKeepsACallFromBeingMade() {
        RequestInterceptor failing = template -> {
            throw new FeignException.UnprocessableEntity(
                    "no token",
                    Request.create(Request.HttpMethod.POST, "/token", Map.of(), null, null, null),
                    null,
                    null);
        };
        return Stream.of(
                builder -> IdempotentFeign.install(builder).requestInterceptor(failing),
                builder -> IdempotentFeign.install(builder.requestInterceptor(failing)),
                builder -> IdempotentFeign.install(
                        builder.invocationHandlerFactory((target, dispatch) -> (proxy, method, args) -> {
                            failing.apply(new RequestTemplate());
                            return null;
                        })),
                builder -> IdempotentFeign.install(builder.encoder((object, type, template) -> {
                    throw new EncodeException("cannot be written");
                })));
    }

    /** What fails on the way, such as a call for a token, could be taken for the operation's own response. */
    @ParameterizedTest
    @MethodSource("whatKeepsACallFromBeingMade")
    void resumedCallThatThisSideCannotMakeIsAsUnknownAsBefore(UnaryOperator<Feign.Builder> failing) {
        Instant sent = Instant.now().minusSeconds(3600);
        Orders orders = target(failing.apply(Feign.builder()));
        FeignOutcomeUnknownException unknown = catchThrowableOfType(
                FeignOutcomeUnknownException.class, () -> IdempotenceScope.resume(JOB, sent, () -> orders.create("x")));
        assertThat(unknown.id()).isEqualTo(JOB);
        assertThat(unknown.firstSentAt()).isEqualTo(sent);
        assertThat(unknown.request().httpMethod()).isEqualTo(Request.HttpMethod.POST);
        assertThat(unknown.request().url()).endsWith("/orders");
        assertThat(unknown).hasCauseInstanceOf(FeignException.class);
        assertThat(server.requests()).isEmpty();
    }
}
