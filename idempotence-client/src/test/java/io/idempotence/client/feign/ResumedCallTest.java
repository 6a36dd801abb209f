package io.idempotence.client.feign;

import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import feign.Client;
import feign.Feign;
import feign.FeignException;
import feign.Request;
import feign.RequestInterceptor;
import feign.RequestTemplate;
import feign.RetryableException;
import feign.codec.EncodeException;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.feign.TestServer.Reply;
import java.io.IOException;
import java.net.ConnectException;
import java.net.SocketTimeoutException;
import java.time.Instant;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
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

    /** Nothing was sent to the other origin. */
    @Test
    void callThatWasRedirectedToAnotherOriginMayBeMadeAgainInItsScope() {
        server.respond(Reply.status(307).header("Location", nobody() + "/orders"));
        Orders orders = orders();
        IdempotenceScope.with(JOB, () -> {
            assertThatThrownBy(() -> orders.create("x"))
                    .isInstanceOfSatisfying(
                            FeignException.class, e -> assertThat(e.status()).isEqualTo(307));
            assertThat(orders.create("x")).isEqualTo("ok");
        });
        assertThat(server.ids()).containsExactly("\"job-1\"", "\"job-1\"");
    }

    @Test
    void unknownCallMadeAgainUnderItsIdIsTheSameCallForTheServer() {
        Client client = new LosingClient(new IOException("1"), new IOException("2"), new IOException("3"));
        Orders orders = orders(fast().build(), b -> b.client(client));
        FeignOutcomeUnknownException unknown =
                catchThrowableOfType(FeignOutcomeUnknownException.class, () -> orders.create("x"));
        IdempotenceId id = unknown.id();
        assertThat(IdempotenceScope.with(id, () -> orders.create("x"))).isEqualTo("ok");
        assertThat(new HashSet<>(server.ids())).hasSize(1);
    }

    static Stream<List<Reply>> responsesThatSettleNothing() {
        return Stream.of(
                List.of(Reply.status(503), Reply.status(503), Reply.status(503)),
                List.of(Reply.status(401)),
                List.of(Reply.status(404)),
                List.of(Reply.refusal("key-reused", 422)),
                Collections.nCopies(3, Reply.refusal("storage-unavailable", 503)));
    }

    /** The call may have been executed, and these responses do not show whether it was. */
    @ParameterizedTest
    @MethodSource("responsesThatSettleNothing")
    void resumedCallIsAsUnknownAsBeforeUnlessItsResponseSettlesIt(List<Reply> responses) {
        Instant sent = Instant.now().minusSeconds(3600);
        server.respond(responses.toArray(Reply[]::new));
        FeignOutcomeUnknownException unknown = catchThrowableOfType(
                FeignOutcomeUnknownException.class,
                () -> IdempotenceScope.resume(JOB, sent, () -> orders().create("x")));
        assertThat(unknown.id()).isEqualTo(JOB);
        assertThat(unknown.firstSentAt()).isEqualTo(sent);
        assertEnd(UNKNOWN, responses.size(), responses.size());
    }

    @Test
    void resumedCallThatIsNotSentIsAsUnknownAsBefore() {
        Orders orders = refused(fast().build());
        assertThatThrownBy(() -> IdempotenceScope.resume(JOB, Instant.now(), () -> orders.create("x")))
                .isInstanceOf(FeignOutcomeUnknownException.class);
        // In a scope of the caller's own it may be the first one.
        assertThatThrownBy(() -> IdempotenceScope.with(JOB, () -> orders.create("x")))
                .isExactlyInstanceOf(RetryableException.class);
    }

    @Test
    void responseOfTheOperationSettlesAResumedCall() {
        server.respond(Reply.status(400), Reply.status(404).header("Idempotent-Replayed", "true"));
        assertThatThrownBy(() -> IdempotenceScope.resume(JOB, Instant.now(), () -> orders().create("x")))
                .isInstanceOf(FeignException.BadRequest.class);
        assertThatThrownBy(() -> IdempotenceScope.resume(JOB, Instant.now(), () -> orders().create("x")))
                .isInstanceOf(FeignException.NotFound.class);
        server.respond(Reply.refusal("result-unavailable", 409));
        assertThatThrownBy(() -> IdempotenceScope.resume(JOB, Instant.now(), () -> orders().create("x")))
                .isInstanceOf(FeignRequestRefusedException.class);
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
