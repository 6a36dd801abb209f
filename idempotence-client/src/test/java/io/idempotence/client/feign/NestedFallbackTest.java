package io.idempotence.client.feign;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import feign.InvocationHandlerFactory;
import io.idempotence.client.feign.TestServer.Reply;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Calls with a fallback inside of their proxy, as of a circuit breaker, that makes another call. The other call has an ID of its own. */
class NestedFallbackTest extends FeignTestBase {
    private FeignOutcomeUnknownException end(InvocationHandlerFactory backup, Reply... replies) {
        Orders other = orders(fast().maxAttempts(1).build(), b -> b.invocationHandlerFactory(backup));
        InvocationHandlerFactory fallback = (target, dispatch) -> (proxy, method, args) -> {
            try {
                return dispatch.get(method).invoke(args);
            } catch (Exception e) {
                return other.create("backup");
            }
        };
        server.respond(replies);
        Orders orders = orders(fast().maxAttempts(1).build(), b -> b.invocationHandlerFactory(fallback));
        return (FeignOutcomeUnknownException) catchThrowable(() -> orders.create("tea"));
    }

    private FeignOutcomeUnknownException end(Reply... replies) {
        return end(new InvocationHandlerFactory.Default(), replies);
    }

    private String idOf(int request) {
        return server.ids().get(request).replace("\"", "");
    }

    /** The caller would ask again under an ID that the provider has never seen. */
    @Test
    void unknownOutcomeOfAFallbackDoesNotHideThatOfTheCall() {
        FeignOutcomeUnknownException unknown = end(Reply.status(504), Reply.status(504));
        assertThat(unknown.id()).hasToString(idOf(0));
        assertThat(unknown).hasCauseInstanceOf(FeignOutcomeUnknownException.class);
        assertThat(((FeignOutcomeUnknownException) unknown.getCause()).id()).hasToString(idOf(1));
    }

    @ParameterizedTest
    @ValueSource(ints = {401, 422, 500})
    void unknownOutcomeOfAFallbackIsTheEndOfACallThatIsKnown(int status) {
        assertThat(end(Reply.status(status), Reply.status(504)).id()).hasToString(idOf(1));
    }

    /** What ended the other call says nothing about this one. */
    @ParameterizedTest
    @ValueSource(classes = {TimeoutException.class, RejectedExecutionException.class})
    void causeOfTheUnknownOutcomeOfAFallbackMakesNoKnownCallUnknown(Class<? extends Exception> cause) {
        InvocationHandlerFactory layer = (target, dispatch) -> (proxy, method, args) -> {
            assertThatThrownBy(() -> dispatch.get(method).invoke(args)).isNotNull();
            throw cause.getConstructor().newInstance();
        };
        FeignOutcomeUnknownException unknown = end(layer, Reply.status(500), Reply.status(504));
        assertThat(unknown.id()).hasToString(idOf(1));
        assertThat(unknown).hasCauseInstanceOf(cause);
    }
}
