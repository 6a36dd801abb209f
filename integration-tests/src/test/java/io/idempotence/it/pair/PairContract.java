package io.idempotence.it.pair;

import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.SUCCEEDED;
import static io.idempotence.it.wire.FaultyProxy.Fault.NONE;
import static io.idempotence.it.wire.FaultyProxy.Fault.RESET_AFTER_FORWARDING;
import static io.idempotence.it.wire.FaultyProxy.Fault.RESET_BEFORE_FORWARDING;
import static io.idempotence.it.wire.FaultyProxy.Fault.RESPONSE_LATE;
import static io.idempotence.it.wire.FaultyProxy.Fault.RESPONSE_LOST;
import static io.idempotence.it.wire.Latches.awaitLatch;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.awaitility.Awaitility.await;

import feign.Client;
import feign.FeignException;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceClientEvent.Result;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.feign.FeignOutcomeUnknownException;
import io.idempotence.client.feign.FeignRequestRefusedException;
import io.idempotence.client.feign.IdempotentFeign;
import io.idempotence.http.IdempotencyKeyHeader.Style;
import io.idempotence.http.Refusal;
import io.idempotence.it.wire.FaultyProxy;
import io.idempotence.it.wire.FaultyProxy.Fault;
import io.idempotence.it.wire.RawRequest;
import io.idempotence.server.servlet.IdempotenceFilter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Promises P1 to P5 and P7 with both halves, over sockets that fail, with two instances of the provider on one Redis. Whatever
 * happens, there are as many payments as orders. Extend it, say which HTTP client.
 */
abstract class PairContract extends RedisPairTestBase {
    abstract Client client();

    private Payments pair(FaultyProxy.Plan plan) {
        return through(plan, fast(), client(), READ_TIMEOUT_MILLIS, instances());
    }

    /** With time enough for each response of a busy machine: what a test counts must not include retries after timeouts. */
    private Payments patientPair(FaultyProxy.Plan plan) {
        return through(plan, fast(), client(), 20_000, instances());
    }

    // ---- faults of one call

    @ParameterizedTest
    @EnumSource
    void faultAfterFaultOnBothInstancesAndThereIsOnePaymentAndItsResponse(Fault fault) {
        Payments payments = pair((request, n) -> n <= 3 ? fault : NONE);
        assertThat(payments.pay("order-1")).isEqualTo("receipt 1 for order-1");
        assertThat(ledger.payments()).isEqualTo(Map.of("order-1", 1));
        assertOneId();
    }

    @ParameterizedTest
    @EnumSource(names = {"RESPONSE_LOST", "RESPONSE_LATE"})
    void responseAskedForAgainIsTheStoredOne(Fault fault) {
        Payments payments = pair((request, n) -> n == 1 ? fault : NONE);
        payments.pay("order-1");
        assertThat(events).hasSize(1);
        // A client that repeats the request by itself gets the stored response within its first attempt.
        assertThat(events.get(0).result()).isEqualTo(Result.REPLAYED);
    }

    @Test
    void handlerSlowerThanTwoReadTimeoutsPaysOnceAndItsCallerGetsTheReceipt() {
        handler.set((request, response) -> {
            String order = order(request);
            // Slow until the client has asked three times, at the least two read timeouts long.
            await().pollDelay(Duration.ofMillis(2 * READ_TIMEOUT_MILLIS + 100))
                    .until(() -> proxy.requests().size() >= 3);
            respond(response, 201, ledger.pay(order));
        });
        Payments payments = pair((request, n) -> NONE);
        assertThat(payments.pay("order-1")).isEqualTo("receipt 1 for order-1");
        assertThat(ledger.payments()).isEqualTo(Map.of("order-1", 1));
        assertOneId();
        assertThat(proxy.statusLines()).anyMatch(line -> line.contains(" 409"));
    }

    @Test
    void resetWhileTheHandlerRunsAndTheSecondInstanceHasTheClientWaitForTheFirst() throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch polled = new CountDownLatch(3);
        handler.set((request, response) -> {
            String order = order(request);
            started.countDown();
            awaitLatch(polled);
            respond(response, 201, ledger.pay(order));
        });
        Payments payments = pair((request, n) -> {
            if (n > 1) {
                // The second request could overtake the first one on its way to the storage.
                awaitLatch(started);
            }
            polled.countDown();
            return n == 1 ? RESET_AFTER_FORWARDING : NONE;
        });
        assertThat(payments.pay("order-1")).isEqualTo("receipt 1 for order-1");
        assertThat(ledger.payments()).isEqualTo(Map.of("order-1", 1));
        assertThat(events.get(0).attempts()).isLessThan(proxy.requests().size());
    }

    // ---- many callers

    @Test
    void twoHundredOrdersThroughEveryFaultAreTwoHundredPayments() throws Exception {
        int orders = 200;
        Random random = new Random(4711);
        Map<String, List<Fault>> plans = new TreeMap<>();
        for (int i = 0; i < orders; i++) {
            plans.put("order-" + i, plan(random));
        }
        Map<String, CountDownLatch> askedAgain = new ConcurrentHashMap<>();
        plans.keySet().forEach(order -> askedAgain.put(order, new CountDownLatch(1)));
        AtomicInteger slow = new AtomicInteger();
        handler.set((request, response) -> {
            String order = order(request);
            if (order.endsWith("3")) {
                slow.incrementAndGet();
                // Some are asked for again while they run, some are not.
                awaitForAMoment(askedAgain.get(order));
            }
            respond(response, 201, ledger.pay(order));
        });
        Payments payments = through(
                (request, n) -> {
                    List<Fault> plan = plans.get(request.text());
                    if (n == 2) {
                        askedAgain.get(request.text()).countDown();
                    }
                    return n <= plan.size() ? plan.get(n - 1) : NONE;
                },
                fast().maxAttempts(20).budget(100_000, 1, 1).deadline(Duration.ofMinutes(5)),
                client(),
                10 * READ_TIMEOUT_MILLIS,
                instances());
        Map<String, String> responses = concurrently(orders, i -> payments.pay("order-" + i));
        assertThat(ledger.payments()).isEqualTo(Ledger.onceEach(plans.keySet()));
        responses.forEach((call, response) -> assertThat(response).endsWith(" for order-" + call));
        assertThat(Set.copyOf(responses.values())).hasSize(orders);
        assertThat(proxy.requests().stream()
                        .map(request -> request.header("Idempotency-Key") + " " + request.text())
                        .distinct())
                .as("one ID for each order")
                .hasSize(orders);
        assertThat(slow).hasValue(20);
        assertThat(plans.values().stream().flatMap(List::stream))
                .as("faults, one of each kind at the least")
                .hasSizeGreaterThan(orders)
                .contains(RESPONSE_LOST, RESPONSE_LATE, RESET_BEFORE_FORWARDING, RESET_AFTER_FORWARDING);
    }

    /** None to three faults, of which one is a late response at the most: a client waits for that until its read timeout. */
    private static List<Fault> plan(Random random) {
        List<Fault> kinds = List.of(RESPONSE_LOST, RESPONSE_LATE, RESET_BEFORE_FORWARDING, RESET_AFTER_FORWARDING);
        List<Fault> plan = new ArrayList<>();
        int faults = random.nextInt(4);
        for (int i = 0; i < faults; i++) {
            Fault fault = kinds.get(random.nextInt(kinds.size()));
            plan.add(plan.contains(fault) && fault == RESPONSE_LATE ? RESPONSE_LOST : fault);
        }
        return plan;
    }

    @ParameterizedTest
    @ValueSource(strings = {"scope", "header"})
    void hundredDuplicatesOfOneIdAreOnePaymentAndHundredEqualResponses(String how) throws Exception {
        AtomicInteger arrived = new AtomicInteger();
        handler.set((request, response) -> {
            String order = order(request);
            await().until(() -> arrived.get() >= 100);
            respond(response, 201, ledger.pay(order));
        });
        Payments payments = through(
                (request, n) -> {
                    arrived.incrementAndGet();
                    return NONE;
                },
                fast(),
                client(),
                20_000,
                instances());
        String id = UUID.randomUUID().toString();
        Map<String, String> responses = concurrently(
                100,
                i -> how.equals("scope")
                        ? IdempotenceScope.with(IdempotenceId.of(id), () -> payments.pay("order-1"))
                        : payments.payAs(id, "order-1"));
        assertThat(ledger.payments()).isEqualTo(Map.of("order-1", 1));
        assertThat(responses.values()).hasSize(100).containsOnly("receipt 1 for order-1");
        // Waiting for the first one costs no attempt.
        assertThat(events).hasSize(100).allMatch(event -> event.attempts() == 1);
        assertThat(events.stream().filter(event -> event.result() == SUCCEEDED)).hasSize(1);
    }

    // ---- failures of the business and of the system

    @ParameterizedTest
    @ValueSource(ints = {404, 422})
    void businessFailureIsNotRetriedAndAManualRetryGetsTheSameOne(int status) {
        AtomicInteger runs = new AtomicInteger();
        handler.set((request, response) -> respond(response, status, "no funds, run " + runs.incrementAndGet()));
        Payments payments = patientPair((request, n) -> NONE);
        IdempotenceId id = IdempotenceId.of(UUID.randomUUID().toString());
        for (int i = 0; i < 2; i++) {
            FeignException failure = catchThrowableOfType(
                    FeignException.class, () -> IdempotenceScope.with(id, () -> payments.pay("order-1")));
            assertThat(failure.status()).isEqualTo(status);
            assertThat(failure.contentUTF8()).isEqualTo("no funds, run 1");
        }
        assertThat(runs).hasValue(1);
        assertThat(proxy.requests()).hasSize(2);
        assertThat(events).hasSize(2).allMatch(event -> event.result() == FAILED && event.attempts() == 1);
    }

    @Test
    void businessFailureWhoseResponseWasLostReachesItsCaller() {
        AtomicInteger runs = new AtomicInteger();
        handler.set((request, response) -> respond(response, 422, "no funds, run " + runs.incrementAndGet()));
        Payments payments = patientPair((request, n) -> n <= 2 ? RESPONSE_LOST : NONE);
        FeignException failure = catchThrowableOfType(FeignException.class, () -> payments.pay("order-1"));
        assertThat(failure).isInstanceOf(FeignException.UnprocessableEntity.class);
        assertThat(failure.contentUTF8()).isEqualTo("no funds, run 1");
        assertThat(runs).hasValue(1);
    }

    @ParameterizedTest
    @ValueSource(ints = {500, 503, 429})
    void systemFailureReleasesTheIdAndTheClientsRetryPays(int status) {
        AtomicInteger runs = new AtomicInteger();
        handler.set((request, response) -> {
            if (runs.incrementAndGet() == 1) {
                respond(response, status, "not now");
            } else {
                respond(response, 201, ledger.pay(order(request)));
            }
        });
        Payments payments = patientPair((request, n) -> NONE);
        assertThat(payments.pay("order-1")).isEqualTo("receipt 1 for order-1");
        assertThat(ledger.payments()).isEqualTo(Map.of("order-1", 1));
        assertThat(runs).hasValue(2);
        assertOneId();
    }

    @Test
    void systemFailureWhoseResponseWasLostIsRetriedAndPays() {
        AtomicInteger runs = new AtomicInteger();
        handler.set((request, response) -> {
            if (runs.incrementAndGet() == 1) {
                throw new IllegalStateException("the database is away");
            }
            respond(response, 201, ledger.pay(order(request)));
        });
        Payments payments = pair((request, n) -> n == 1 ? RESPONSE_LOST : NONE);
        assertThat(payments.pay("order-1")).isEqualTo("receipt 1 for order-1");
        assertThat(ledger.payments()).isEqualTo(Map.of("order-1", 1));
        assertThat(runs).hasValue(2);
    }

    /** P5 */
    @Test
    void anotherOrderUnderTheSameIdIsRefusedAndNotPaid() {
        Payments payments = pair((request, n) -> NONE);
        String id = UUID.randomUUID().toString();
        assertThat(payments.payAs(id, "order-1")).isEqualTo("receipt 1 for order-1");
        FeignRequestRefusedException refused =
                catchThrowableOfType(FeignRequestRefusedException.class, () -> payments.payAs(id, "order-2"));
        assertThat(refused.refusal()).isEqualTo(Refusal.KEY_REUSED);
        assertThat(ledger.payments()).isEqualTo(Map.of("order-1", 1));
    }

    /** What differs from attempt to attempt would be another request to the server half. */
    @Test
    void bodyEncodedAnewForEachAttemptIsOneRequestToTheServer() {
        AtomicInteger encoded = new AtomicInteger();
        Payments payments = through(
                (request, n) -> n <= 2 ? RESPONSE_LOST : NONE,
                fast(),
                feign(client(), READ_TIMEOUT_MILLIS)
                        .encoder((object, type, template) ->
                                template.body(object + " encoded " + encoded.incrementAndGet())),
                instances());
        assertThat(payments.pay("order-1")).isEqualTo("receipt 1 for order-1 encoded 1");
        assertThat(ledger.payments()).isEqualTo(Map.of("order-1 encoded 1", 1));
    }

    @ParameterizedTest
    @EnumSource
    void clientThatSpellsTheIdAnotherWayGetsTheStoredResponse(Style style) {
        IdempotenceId id = IdempotenceId.of(UUID.randomUUID().toString());
        Payments first = through((request, n) -> NONE, fast().headerStyle(style), client(), 20_000, instances());
        assertThat(IdempotenceScope.with(id, () -> first.pay("order-1"))).isEqualTo("receipt 1 for order-1");
        Style other = style == Style.QUOTED ? Style.BARE : Style.QUOTED;
        Payments second = through((request, n) -> NONE, fast().headerStyle(other), client(), 20_000, instances());
        assertThat(IdempotenceScope.with(id, () -> second.pay("order-1"))).isEqualTo("receipt 1 for order-1");
        assertThat(ledger.payments()).isEqualTo(Map.of("order-1", 1));
    }

    @Test
    void lostResponseThatWasTooLargeToKeepIsTypedAndNotPaidForAgain() {
        handler.set((request, response) -> {
            String receipt = ledger.pay(order(request));
            respond(response, 201, receipt + " ".repeat(2 << 20));
        });
        Payments payments =
                through((request, n) -> n == 1 ? RESPONSE_LOST : NONE, fast(), client(), 20_000, instances());
        FeignRequestRefusedException refused =
                catchThrowableOfType(FeignRequestRefusedException.class, () -> payments.pay("order-1"));
        assertThat(refused.refusal()).isEqualTo(Refusal.RESULT_UNAVAILABLE);
        assertThat(refused.refusal().safeNewId()).isFalse();
        assertThat(ledger.payments()).isEqualTo(Map.of("order-1", 1));
    }

    // ---- the unknown, and what to do with it

    /** T13 */
    @Test
    void handlerThatCannotTellWhetherItPaidEndsInATypedUnknownAndDoesNotRunAgain() {
        handler.set((request, response) -> {
            ledger.pay(order(request));
            IdempotenceFilter.execution(request).orElseThrow().markUnknown();
            respond(response, 500, "the bank did not respond");
        });
        Payments payments = patientPair((request, n) -> NONE);
        FeignOutcomeUnknownException unknown =
                catchThrowableOfType(FeignOutcomeUnknownException.class, () -> payments.pay("order-1"));
        assertThat(unknown.status()).isEqualTo(409);
        assertThat(unknown.attempts()).isEqualTo(2);
        assertThat(ledger.payments()).isEqualTo(Map.of("order-1", 1));
    }

    @ParameterizedTest
    @EnumSource(names = {"RESPONSE_LOST", "RESET_AFTER_FORWARDING", "RESPONSE_LATE"})
    void unknownOutcomeAskedForLaterUnderItsIdIsTheFirstOne(Fault fault) throws Exception {
        AtomicInteger requests = new AtomicInteger();
        AtomicInteger broken = new AtomicInteger(1);
        Payments payments = through(
                (request, n) -> {
                    requests.incrementAndGet();
                    return broken.get() == 1 ? fault : NONE;
                },
                fast().maxAttempts(2),
                client(),
                READ_TIMEOUT_MILLIS,
                instances());
        FeignOutcomeUnknownException unknown =
                catchThrowableOfType(FeignOutcomeUnknownException.class, () -> payments.pay("order-1"));
        assertThat(unknown.attempts()).isEqualTo(2);
        await().until(() -> ledger.payments().equals(Map.of("order-1", 1)));

        broken.set(0);
        // Both attempts of the client above may time out on a busy machine.
        Payments patient =
                IdempotentFeign.install(feign(client(), 20_000), fast().build()).target(Payments.class, proxy.url());
        assertThat(IdempotenceScope.with(unknown.id(), () -> patient.pay("order-1")))
                .isEqualTo("receipt 1 for order-1");
        assertThat(ledger.payments()).isEqualTo(Map.of("order-1", 1));
        assertOneId();
    }

    /** The client cannot know that. */
    @Test
    void callThatNeverReachedTheProviderIsUnknownAndPaidOnceWhenItIsMadeAgain() {
        AtomicBoolean broken = new AtomicBoolean(true);
        Payments payments = through(
                (request, n) -> broken.get() ? RESET_BEFORE_FORWARDING : NONE, fast(), client(), 20_000, instances());
        IdempotenceId id = IdempotenceId.of(UUID.randomUUID().toString());
        IdempotenceScope.with(id, () -> {
            assertThatThrownBy(() -> payments.pay("order-1")).isInstanceOf(FeignOutcomeUnknownException.class);
            assertThat(ledger.payments()).isEmpty();
            broken.set(false);
            assertThat(payments.pay("order-1")).isEqualTo("receipt 1 for order-1");
        });
        assertThat(ledger.payments()).isEqualTo(Map.of("order-1", 1));
        assertThat(events.get(0).result()).isEqualTo(Result.UNKNOWN);
        assertOneId();
    }

    private void assertOneId() {
        assertThat(proxy.requests().stream()
                        .map((RawRequest request) -> request.header("Idempotency-Key"))
                        .distinct())
                .hasSize(1);
    }

    private static void awaitForAMoment(CountDownLatch latch) {
        try {
            latch.await(300, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
