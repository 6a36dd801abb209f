package io.idempotence.client.feign;

import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.feign.AsyncCalls.failure;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import feign.Client;
import feign.FeignException;
import feign.Response;
import feign.RetryableException;
import io.github.resilience4j.retry.RetryConfig;
import io.github.resilience4j.retry.RetryRegistry;
import io.idempotence.client.IdempotenceClientAttemptEvent.Outcome;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.client.feign.TestServer.Reply;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The deadline of a call, and the time that it leaves for attempts, for waits, and for the server. */
class CallDeadlineTest extends FeignTestBase {
    private final Client sockets = new Client.Default(null, null);

    @RegisterExtension
    private final AsyncCalls async = new AsyncCalls(this);

    /** As a decoder does with what it has no use for. */
    @Test
    void bodyThatStallsWhileItIsSkippedEndsWithTheDeadline() {
        warmUp();
        StallingBody body = new StallingBody();
        Client stalls = (request, options) -> {
            try (Response response = sockets.execute(request, options)) {
                return response.toBuilder().body(body, 10).build();
            }
        };
        Orders orders = orders(
                fast().deadline(Duration.ofMillis(2_500)).build(),
                builder -> builder.client(stalls)
                        .decoder((response, type) ->
                                response.body().asInputStream().skip(10)));
        try {
            assertTimeoutPreemptively(
                    Duration.ofSeconds(20),
                    () -> assertThatThrownBy(() -> orders.create("x")).isInstanceOf(OutcomeUnknown.class));
        } finally {
            body.end();
        }
    }

    @ParameterizedTest
    @CsvSource({"'respond-async, wait=1', 'respond-async, wait=1'", "return=minimal, return=minimal|wait=5"})
    void waitThatAnInterceptorChoseStays(String chosen, String sent) {
        orders(fast().build(), b -> b.requestInterceptor(t -> t.header("Prefer", chosen)))
                .create("x");
        assertThat(String.join("|", server.requests().get(0).header("Prefer"))).isEqualTo(sent);
    }

    @ParameterizedTest
    @CsvSource({"10000, wait=5", "4000, wait=3", "1400, ''", "200, ''"})
    void theServerIsNotAskedToHoldADuplicateForLongerThanThisSideListens(long readTimeout, String expected) {
        orders(fast().build(), b -> b.client(patient()).options(readTimeout(readTimeout)))
                .create("x");
        assertThat(String.join("|", server.requests().get(0).header("Prefer"))).isEqualTo(expected);
        assertThat(server.requests().get(0).id()).isNotEmpty();
        assertThat(server.requests().get(0).body()).isEqualTo("x");
    }

    @Test
    void callerWhoReadsTheResponseHimselfHasAllTheTimeHeLikes() throws Exception {
        warmUp();
        server.respond(Reply.ok("x".repeat(10_000)).drip(Duration.ofMillis(70)));
        Orders orders = orders(fast().deadline(Duration.ofSeconds(3)).build());
        try (Response response = orders.raw("x")) {
            assertThat(response.body().asInputStream().readAllBytes()).hasSize(10_000);
        }
    }

    /** A response that is not read holds a connection: it goes before the wait, not after it. */
    @ParameterizedTest
    @CsvSource({"503, ''", "409, in-progress"})
    void aResponseIsLetGoBeforeTheWait(int status, String refusal) throws Exception {
        Reply reply = refusal.isEmpty() ? Reply.status(status) : Reply.refusal(refusal, status);
        server.respond(reply.header("Retry-After", "20").body("not now"));
        CountDownLatch closed = new CountDownLatch(1);
        Client client = (request, options) -> {
            Response response = sockets.execute(request, options);
            return response.toBuilder()
                    .body(new ClosingBody(response.body(), closed::countDown))
                    .build();
        };
        Orders orders = orders(fast().deadline(Duration.ofMinutes(2)).build(), b -> b.client(client));
        AtomicReference<Throwable> end = new AtomicReference<>();
        Thread caller = new Thread(() -> end.set(catchThrowable(() -> orders.raw("x"))));
        caller.start();

        assertThat(closed.await(60, TimeUnit.SECONDS)).isTrue();
        assertThat(caller.isAlive()).isTrue();
        caller.interrupt();
        caller.join();
        assertThat(end.get()).isInstanceOf(FeignException.class);
        assertThat(((FeignException) end.get()).status()).isEqualTo(status);
        assertThat(server.requests()).hasSize(1);
    }

    /** It took too long between the decision and the attempt: a pause of the machine, or of a listener. */
    @Test
    void attemptThatWouldBeginAfterTheDeadlineIsNotSent() {
        warmUp();
        Duration deadline = Duration.ofSeconds(3);
        RetryRegistry registry = RetryRegistry.ofDefaults();
        RetryConfig soon =
                RetryConfig.custom().waitDuration(Duration.ofMillis(1)).build();
        registry.retry("orders", soon).getEventPublisher().onRetry(event -> await(deadline));
        server.respond(Reply.status(503));
        Orders orders = orders(fast().retryRegistry(registry).deadline(deadline).build());
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignException.ServiceUnavailable.class);
        assertThat(server.requests()).hasSize(1);
        assertEnd(FAILED, 1, 1);
    }

    /** As an interceptor does whose token does not come. */
    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void requestThatIsReadyAfterTheDeadlineIsNotSent(int slowAttempt) {
        warmUp();
        // The attempt before it must have its response.
        Duration deadline = Duration.ofSeconds(slowAttempt == 1 ? 1 : 3);
        server.respond(Reply.status(503));
        AtomicInteger made = new AtomicInteger();
        Orders orders = orders(
                fast().deadline(deadline).build(),
                builder -> builder.requestInterceptor(template -> {
                    if (made.incrementAndGet() == slowAttempt) {
                        await(deadline);
                    }
                }));
        Throwable end = catchThrowable(() -> orders.create("x"));
        Throwable notSent = slowAttempt == 1 ? end : end.getSuppressed()[0];
        assertThat(notSent).isInstanceOf(RetryableException.class).hasMessageContaining("deadline");
        if (slowAttempt == 2) {
            assertThat(end).isInstanceOf(FeignException.ServiceUnavailable.class);
        }
        assertThat(server.requests()).hasSize(slowAttempt - 1);
        assertEnd(FAILED, slowAttempt, slowAttempt - 1);
        assertThat(attempts.get(slowAttempt - 1).outcome()).isEqualTo(Outcome.NOT_SENT);
    }

    @Test
    void requestThatReturnsAFutureAndIsReadyAfterTheDeadlineIsNotSent() {
        Duration deadline = Duration.ofSeconds(1);
        AsyncOrders orders = async.orders(
                fast().deadline(deadline).build(), builder -> builder.requestInterceptor(template -> await(deadline)));
        assertThat(failure(orders.create("x"))).isInstanceOf(RetryableException.class);
        assertThat(server.requests()).isEmpty();
        assertEnd(FAILED, 1, 0);
    }

    private static void await(Duration time) {
        try {
            new CountDownLatch(1).await(time.toMillis(), TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** A client that waits for as long as a slow machine takes, whatever the options say. */
    private Client patient() {
        return (request, options) -> sockets.execute(request, readTimeout(60_000));
    }

    @Test
    void attemptGetsNoMoreTimeThanTheCallHasLeft() {
        assertThat(timeoutsOfTwoAttemptsFor(60_000))
                .satisfiesExactly(
                        first -> assertThat(first).isPositive().isLessThanOrEqualTo(30_000),
                        second -> assertThat(second).isPositive().isLessThanOrEqualTo(29_700));
        assertThat(timeoutsOfTwoAttemptsFor(400)).containsExactly(400, 400);
    }

    /** What attempts with this read timeout get of a deadline of 30 s, the second one 300 ms after the first. */
    private List<Integer> timeoutsOfTwoAttemptsFor(long readTimeoutMillis) {
        server.respond(Reply.status(503).header("Retry-After-Ms", "300"));
        List<Integer> timeouts = new ArrayList<>();
        Client spy = (request, options) -> {
            timeouts.add(options.readTimeoutMillis());
            return patient().execute(request, options);
        };
        Orders orders = orders(fast().build(), b -> b.client(spy).options(readTimeout(readTimeoutMillis)));
        assertThat(orders.create("x")).isEqualTo("ok");
        return timeouts;
    }
}
