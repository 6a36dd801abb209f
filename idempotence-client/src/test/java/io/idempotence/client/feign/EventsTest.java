package io.idempotence.client.feign;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import feign.FeignException;
import io.idempotence.client.IdempotenceClientAttemptEvent;
import io.idempotence.client.IdempotenceClientAttemptEvent.Outcome;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceClientListener;
import io.idempotence.client.feign.TestServer.Reply;
import io.idempotence.client.metrics.IdempotenceClientMetrics;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.List;
import java.util.LongSummaryStatistics;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** The events that listeners get, and the metrics that are made of them. */
class EventsTest extends FeignTestBase {

    /** The server half says so by {@code Idempotent-Replayed}, and needs no poll. */
    @Test
    void requestThatTheServerHoldsForAnEarlierAttemptIsATimeOfWaitingAndNoPoll() {
        Duration held = Duration.ofMillis(50);
        server.respond(Reply.ok("stored")
                .header("Idempotent-Replayed", "true")
                .body("x".repeat(50))
                .drip(held.dividedBy(50)));
        orders().create("x");
        assertThat(attempts.get(0).polls()).isZero();
        assertThat(attempts.get(0).waited()).isGreaterThanOrEqualTo(held);
    }

    /** The earlier attempt released the ID, so that this one ran: its own time is not one of waiting. */
    @Test
    void timeOfAnAttemptsOwnExecutionIsNotOneOfWaiting() {
        server.respond(Reply.refusal("in-progress", 409).header("Retry-After-Ms", "1"), Reply.ok("first"));
        orders().create("x");
        assertThat(attempts.get(0).polls()).isEqualTo(1);
        assertThat(attempts.get(0).waited())
                .isPositive()
                .isLessThan(attempts.get(0).duration());
    }

    /** A metrics library of the wrong version, say. */
    @Test
    void errorOfAListenerTakesNoResponseAway() {
        Orders orders = orders(fast().listener(event -> {
                    throw new NoSuchMethodError("listener");
                })
                .build());
        assertThat(orders.create("x")).isEqualTo("ok");
    }

    @Test
    void listenerThatThrowsChangesNothing() {
        server.respond(Reply.status(503));
        Orders orders = orders(fast().listener(new IdempotenceClientListener() {
                    @Override
                    public void onCall(IdempotenceClientEvent event) {
                        throw new IllegalStateException("call");
                    }

                    @Override
                    public void onAttempt(IdempotenceClientAttemptEvent event) {
                        throw new IllegalStateException("attempt");
                    }
                })
                .build());
        assertThat(orders.create("x")).isEqualTo("ok");
        assertThat(server.requests()).hasSize(2);
    }

    @Test
    void metricsCountAttemptsResultsPollsAndTheBudgetUnderFewLabels() {
        MeterRegistry registry = new SimpleMeterRegistry();
        Orders orders =
                orders(fast().listener(IdempotenceClientMetrics.of(registry)).build());
        server.respond(
                Reply.status(503),
                Reply.refusal("in-progress", 409).header("Retry-After-Ms", "1"),
                Reply.ok("stored").header("Idempotent-Replayed", "true"));
        orders.create("x");
        orders.create("y");
        Timer waited = registry.get(IdempotenceClientMetrics.WAITED)
                .tags("client", "orders")
                .timer();
        assertThat(waited.count()).isEqualTo(1);
        assertThat(waited.totalTime(TimeUnit.NANOSECONDS)).isPositive();
        assertThat(registry.get(IdempotenceClientMetrics.CALLS)
                        .tags("client", "orders", "method", "Orders#create(String)", "result", "replayed")
                        .timer()
                        .count())
                .isEqualTo(1);
        assertThat(registry.get(IdempotenceClientMetrics.CALLS)
                        .tags("result", "succeeded")
                        .timer()
                        .count())
                .isEqualTo(1);
        assertThat(registry.get(IdempotenceClientMetrics.ATTEMPTS)
                        .tags("client", "orders", "outcome", "retryable")
                        .counter()
                        .count())
                .isEqualTo(1);
        assertThat(registry.get(IdempotenceClientMetrics.POLLS)
                        .tags("client", "orders")
                        .counter()
                        .count())
                .isEqualTo(1);
        assertThat(registry.get(IdempotenceClientMetrics.BUDGET)
                        .tags("client", "orders")
                        .gauge()
                        .value())
                .isEqualTo(497);
    }

    @Test
    void labelsAreBounded() {
        MeterRegistry registry = new SimpleMeterRegistry();
        IdempotenceClientMetrics metrics = IdempotenceClientMetrics.of(registry);
        Duration second = Duration.ofSeconds(1);
        for (int i = 0; i < 3_000; i++) {
            metrics.onCall(new IdempotenceClientEvent(
                    "client-" + i,
                    "m",
                    IdempotenceClientEvent.Result.FAILED,
                    Optional.empty(),
                    1,
                    1,
                    Duration.ZERO,
                    0));
            metrics.onAttempt(new IdempotenceClientAttemptEvent(
                    "client-" + i,
                    "m",
                    Optional.empty(),
                    1,
                    Outcome.FINAL,
                    OptionalInt.of(409),
                    2,
                    1,
                    second,
                    second,
                    Optional.empty()));
        }
        assertThat(registry.getMeters()).hasSize(5 * 1_001);
        assertThat(registry.get(IdempotenceClientMetrics.ATTEMPTS)
                        .tags("client", "other")
                        .counter()
                        .count())
                .isEqualTo(2_000);
        assertThat(registry.get(IdempotenceClientMetrics.CALLS)
                        .tags("client", "other")
                        .timer()
                        .count())
                .isEqualTo(2_000);
    }

    /** Sixty-four callers that were sent away together came back within 31 ms of each other. */
    @Test
    void crowdThatAnOverloadedServerSentAwayDoesNotComeBackAtOnce() {
        int crowd = 64;
        for (int i = 0; i < crowd; i++) {
            server.respond(Reply.status(503).header("Retry-After-Ms", "100"));
        }
        Orders orders = orders(fast().maxAttempts(10).build());
        ExecutorService threads = Executors.newFixedThreadPool(crowd);
        try {
            CompletableFuture.allOf(IntStream.range(0, crowd)
                            .mapToObj(i -> CompletableFuture.runAsync(() -> orders.create("x" + i), threads))
                            .toArray(CompletableFuture[]::new))
                    .join();
        } finally {
            threads.shutdownNow();
        }
        LongSummaryStatistics waits = attempts.stream()
                .flatMap(attempt -> attempt.waitBeforeNext().stream())
                .mapToLong(Duration::toMillis)
                .summaryStatistics();
        assertThat(waits.getCount()).isEqualTo(crowd);
        assertThat(waits.getMin()).isGreaterThanOrEqualTo(100);
        assertThat(waits.getMax() - waits.getMin()).isGreaterThan(100);
    }

    /** A listener of each call that writes down what it gets, with the number of its call. */
    private static IdempotenceClientListener perCall(
            List<String> told, AtomicInteger calls, ThreadLocal<String> thread) {
        return new IdempotenceClientListener() {
            @Override
            public void onCall(IdempotenceClientEvent event) {
                told.add("the common one got a call");
            }

            @Override
            public IdempotenceClientListener ofCall(String client, String method) {
                int call = calls.incrementAndGet();
                told.add(call + " begins: " + client + " " + method);
                return new IdempotenceClientListener() {
                    @Override
                    public Runnable enterRequest() {
                        thread.set("call " + call);
                        return thread::remove;
                    }

                    @Override
                    public void onAttempt(IdempotenceClientAttemptEvent event) {
                        told.add(call + " attempted: " + event.outcome());
                    }

                    @Override
                    public void onCall(IdempotenceClientEvent event) {
                        told.add(call + " ended: " + event.result());
                    }
                };
            }
        };
    }

    @Test
    void eachCallHasItsOwnListenerIfTheCommonOneGivesIt() {
        List<String> told = new CopyOnWriteArrayList<>();
        server.respond(Reply.status(503), Reply.ok("first"), Reply.ok("second"));
        Orders orders = orders(fast().listener(perCall(told, new AtomicInteger(), new ThreadLocal<>()))
                .build());
        orders.create("x");
        orders.create("y");
        assertThat(told)
                .containsExactly(
                        "1 begins: orders Orders#create(String)",
                        "1 attempted: RETRYABLE",
                        "1 attempted: SUCCEEDED",
                        "1 ended: SUCCEEDED",
                        "2 begins: orders Orders#create(String)",
                        "2 attempted: SUCCEEDED",
                        "2 ended: SUCCEEDED");
    }

    @Test
    void everyRequestIsSentWithItsThreadAsTheListenerWantsIt() {
        ThreadLocal<String> thread = new ThreadLocal<>();
        List<String> seen = new CopyOnWriteArrayList<>();
        Orders orders = orders(
                fast().listener(perCall(new CopyOnWriteArrayList<>(), new AtomicInteger(), thread))
                        .build(),
                builder -> builder.client((request, options) -> {
                    seen.add(thread.get());
                    throw new SocketTimeoutException();
                }));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignException.class);
        assertThat(seen).hasSizeGreaterThan(1).containsOnly("call 1");
        assertThat(thread.get()).isNull();
    }
}
