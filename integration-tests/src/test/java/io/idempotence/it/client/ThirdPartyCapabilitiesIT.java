package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.aResponse;
import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.SUCCEEDED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static io.idempotence.it.wire.Latches.awaitLatch;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.github.tomakehurst.wiremock.http.Fault;
import feign.AsyncFeign;
import feign.BaseBuilder;
import feign.Capability;
import feign.Client;
import feign.Feign;
import feign.FeignException;
import feign.Request;
import feign.Response;
import feign.Target.HardCodedTarget;
import feign.micrometer.MicrometerCapability;
import io.github.resilience4j.bulkhead.Bulkhead;
import io.github.resilience4j.bulkhead.BulkheadConfig;
import io.github.resilience4j.bulkhead.BulkheadFullException;
import io.github.resilience4j.circuitbreaker.CallNotPermittedException;
import io.github.resilience4j.circuitbreaker.CircuitBreaker;
import io.github.resilience4j.circuitbreaker.CircuitBreakerConfig;
import io.github.resilience4j.feign.FeignDecorators;
import io.github.resilience4j.feign.Resilience4jFeign;
import io.github.resilience4j.ratelimiter.RateLimiter;
import io.github.resilience4j.ratelimiter.RateLimiterConfig;
import io.github.resilience4j.ratelimiter.RequestNotPermitted;
import io.github.resilience4j.retry.Retry;
import io.github.resilience4j.retry.RetryConfig;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.client.feign.FeignOutcomeUnknownException;
import io.idempotence.client.feign.IdempotentFeign;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The capabilities of Resilience4j and of Micrometer themselves, beside ours. */
class ThirdPartyCapabilitiesIT extends WireMockTestBase {
    private final CircuitBreaker breaker = CircuitBreaker.ofDefaults("orders");
    private final MeterRegistry meters = new SimpleMeterRegistry();
    private boolean async;

    @Override
    BaseBuilder<?, ?> builder() {
        return async
                ? AsyncFeign.builder().client(waitingClient())
                : Feign.builder().client(okHttp());
    }

    private static Retry threeTimes() {
        return Retry.of(
                "around",
                RetryConfig.custom()
                        .maxAttempts(3)
                        .waitDuration(Duration.ofMillis(1))
                        .build());
    }

    private FeignDecorators breaking() {
        return FeignDecorators.builder().withCircuitBreaker(breaker).build();
    }

    private static FeignDecorators retrying() {
        return FeignDecorators.builder().withRetry(threeTimes()).build();
    }

    private void assertBreakerSaw(int successes, int failures) {
        assertThat(breaker.getMetrics().getNumberOfSuccessfulCalls()).isEqualTo(successes);
        assertThat(breaker.getMetrics().getNumberOfFailedCalls()).isEqualTo(failures);
    }

    /** Attempts are beneath the breaker. */
    @Test
    void circuitBreakerBeforeOursCountsCalls() {
        attemptsUpTo(2, status(503));
        Orders orders = orders(builder -> builder.addCapability(Resilience4jFeign.capability(breaking())));
        assertThat(orders.create("x")).isEqualTo(OK);
        assertOneId();
        assertEnd(SUCCEEDED, 3);
        assertBreakerSaw(1, 0);
        alwaysGet(status(503));
        assertThatThrownBy(() -> orders.create("y")).isInstanceOf(FeignException.ServiceUnavailable.class);
        assertBreakerSaw(1, 1);
    }

    @Test
    void openCircuitBreakerBeforeOursLeavesAResumedCallUnknown() {
        breaker.transitionToOpenState();
        Orders orders = orders(builder -> builder.addCapability(Resilience4jFeign.capability(breaking())));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(CallNotPermittedException.class);
        assertThatThrownBy(() ->
                        IdempotenceScope.resume(IdempotenceId.of("job-1"), Instant.now(), () -> orders.create("x")))
                .isInstanceOf(FeignOutcomeUnknownException.class)
                .hasCauseInstanceOf(CallNotPermittedException.class);
        assertThat(received()).isEmpty();
        assertEnd(UNKNOWN, 0);
    }

    /**
     * It was {@link CallNotPermittedException} and the like, which read as "nothing was sent": the breaker opens when the first run
     * ends in the unknown, and the retry around it runs into that.
     */
    @Test
    void callInDoubtWhoseNextRunTheBreakerRefusesEndsInTheUnknown() {
        alwaysGet(status(504));
        CircuitBreaker nervous = CircuitBreaker.of(
                "nervous",
                CircuitBreakerConfig.custom()
                        .minimumNumberOfCalls(1)
                        .slidingWindowSize(1)
                        .build());
        assertUnknown(FeignDecorators.builder().withCircuitBreaker(nervous).withRetry(threeTimes()), 3);
    }

    @Test
    void callInDoubtWhoseNextRunTheRateLimiterRefusesEndsInTheUnknown() {
        alwaysGet(status(504));
        RateLimiter once = RateLimiter.of("once", oneIn(Duration.ofHours(1)));
        assertUnknown(FeignDecorators.builder().withRateLimiter(once).withRetry(threeTimes()), 3);
    }

    @Test
    void callInDoubtWhoseNextRunTheBulkheadRefusesEndsInTheUnknown() {
        alwaysGet(status(504));
        Bulkhead bulkhead = Bulkhead.of(
                "one",
                BulkheadConfig.custom()
                        .maxConcurrentCalls(1)
                        .maxWaitDuration(Duration.ZERO)
                        .build());
        Retry filling = threeTimes();
        filling.getEventPublisher().onRetry(event -> bulkhead.acquirePermission());
        assertUnknown(FeignDecorators.builder().withBulkhead(bulkhead).withRetry(filling), 3);
    }

    /** The layer in between has thrown the response away: the caller sees neither it nor that there was one. */
    @Test
    void executedCallWhoseNextRunTheRateLimiterRefusesEndsInTheUnknown() {
        RateLimiter once = RateLimiter.of("once", oneIn(Duration.ofHours(1)));
        Retry onResult = Retry.of(
                "on result",
                RetryConfig.custom()
                        .waitDuration(Duration.ofMillis(1))
                        .retryOnResult(OK::equals)
                        .build());
        assertUnknown(FeignDecorators.builder().withRateLimiter(once).withRetry(onResult), 1);
    }

    /** The first run may have taken effect. It was the refusal, which reads as "not executed". */
    @Test
    void callWhoseHandlerFailedAndWhoseNextRunTheRateLimiterRefusesEndsAsItsHandlerDid() {
        alwaysGet(status(500));
        Orders orders = retriedButLimitedToOneRun();
        assertThatThrownBy(() -> orders.create("x"))
                .isInstanceOf(FeignException.InternalServerError.class)
                .satisfies(
                        thrown -> assertThat(thrown.getSuppressed()).hasOnlyElementsOfType(RequestNotPermitted.class));
        assertEnd(FAILED, 3);
    }

    @Test
    void callThatGotA404AndIsThenRefusedByTheLimiterKeepsTheLimitersException() {
        alwaysGet(status(404));
        Orders orders = retriedButLimitedToOneRun();
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(RequestNotPermitted.class);
    }

    private Orders retriedButLimitedToOneRun() {
        RateLimiter once = RateLimiter.of("once", oneIn(Duration.ofHours(1)));
        return orders(builder -> builder.addCapability(Resilience4jFeign.capability(FeignDecorators.builder()
                .withRateLimiter(once)
                .withRetry(threeTimes())
                .build())));
    }

    private static RateLimiterConfig oneIn(Duration period) {
        return RateLimiterConfig.custom()
                .limitForPeriod(1)
                .limitRefreshPeriod(period)
                .timeoutDuration(Duration.ZERO)
                .build();
    }

    private void assertUnknown(FeignDecorators.Builder around, int attempts) {
        Orders orders = orders(builder -> builder.addCapability(Resilience4jFeign.capability(around.build())));
        assertThatThrownBy(() -> orders.create("x"))
                .isInstanceOfSatisfying(
                        OutcomeUnknown.class,
                        unknown -> assertThat("\"" + unknown.id() + "\"").isEqualTo(ids().get(0)))
                .cause()
                .isInstanceOfAny(
                        CallNotPermittedException.class, RequestNotPermitted.class, BulkheadFullException.class);
        assertThat(received()).hasSize(attempts);
        assertEnd(UNKNOWN, attempts);
    }

    /** OkHttp reports whether the request left. */
    @Test
    void refusalsOfResilience4jWithinOkHttpAreNotSent() {
        breaker.transitionToOpenState();
        Bulkhead bulkhead = Bulkhead.of(
                "full",
                BulkheadConfig.custom()
                        .maxConcurrentCalls(1)
                        .maxWaitDuration(Duration.ZERO)
                        .build());
        bulkhead.acquirePermission();
        RateLimiter limiter = RateLimiter.of(
                "spent",
                RateLimiterConfig.custom()
                        .limitForPeriod(1)
                        .limitRefreshPeriod(Duration.ofHours(1))
                        .timeoutDuration(Duration.ZERO)
                        .build());
        limiter.acquirePermission();
        assertNotSent(breaker::acquirePermission, CallNotPermittedException.class);
        assertNotSent(bulkhead::acquirePermission, BulkheadFullException.class);
        assertNotSent(() -> RateLimiter.waitForPermission(limiter), RequestNotPermitted.class);
        assertThat(received()).isEmpty();
    }

    private void assertNotSent(Runnable permission, Class<? extends Exception> refusal) {
        events.clear();
        okhttp3.OkHttpClient guarded = okHttp.newBuilder()
                .addInterceptor(chain -> {
                    permission.run();
                    return chain.proceed(chain.request());
                })
                .build();
        Orders orders = target(install(Feign.builder().client(new feign.okhttp.OkHttpClient(guarded)), fast().build()));
        assertThatThrownBy(() -> orders.create("x")).isExactlyInstanceOf(refusal);
        assertEnd(FAILED, 1);
    }

    /** An interceptor may have sent it by something other than OkHttp, which shows in a body only. */
    @Test
    void refusalWithinOkHttpOfACallWithoutABodyIsUnknown() {
        okhttp3.OkHttpClient guarded = okHttp.newBuilder()
                .addInterceptor(chain -> {
                    breaker.transitionToOpenState();
                    breaker.acquirePermission();
                    return chain.proceed(chain.request());
                })
                .build();
        Orders orders = target(install(
                Feign.builder().client(new feign.okhttp.OkHttpClient(guarded)),
                fast().maxAttempts(1).build()));
        assertThatThrownBy(orders::tick)
                .isInstanceOf(FeignOutcomeUnknownException.class)
                .hasCauseInstanceOf(CallNotPermittedException.class);
        assertEnd(UNKNOWN, 1);
    }

    @Test
    void callWhoseRefusalCameAfterItLeftOverOkHttpIsUnknown() {
        okhttp3.OkHttpClient twice = okHttp.newBuilder()
                .addInterceptor(chain -> {
                    okhttp3.Response first = chain.proceed(chain.request());
                    first.close();
                    breaker.transitionToOpenState();
                    breaker.acquirePermission();
                    return first;
                })
                .build();
        Orders orders = target(install(
                Feign.builder().client(new feign.okhttp.OkHttpClient(twice)),
                fast().maxAttempts(1).build()));
        assertThatThrownBy(() -> orders.create("x"))
                .isInstanceOf(FeignOutcomeUnknownException.class)
                .hasCauseInstanceOf(CallNotPermittedException.class);
        assertThat(received()).hasSize(1);
        assertEnd(UNKNOWN, 1);
    }

    /** It was the refusal, which reads as "nothing was sent". */
    @Test
    void callWhoseOwnRetryingClientIsRefusedAfterItSentIsUnknown() {
        alwaysGet(aResponse().withFault(Fault.EMPTY_RESPONSE));
        Client sending = okHttp();
        Client retrying = (request, options) -> {
            breaker.acquirePermission();
            try {
                return sending.execute(request, options);
            } catch (IOException e) {
                breaker.transitionToOpenState();
                breaker.acquirePermission();
                throw e;
            }
        };
        Orders orders = target(
                install(Feign.builder().client(retrying), fast().maxAttempts(1).build()));
        assertThatThrownBy(() -> orders.create("x"))
                .isInstanceOf(FeignOutcomeUnknownException.class)
                .hasCauseInstanceOf(CallNotPermittedException.class);
        assertEnd(UNKNOWN, 1);
    }

    @Test
    void retryBeforeOursKeepsTheIdAndIsOneCall() {
        requestsGet(status(404), status(404));
        Orders orders = orders(builder -> builder.addCapability(Resilience4jFeign.capability(retrying())));
        assertThat(orders.create("x")).isEqualTo(OK);
        assertThat(received()).hasSize(3);
        assertOneId();
        assertEnd(SUCCEEDED, 3);
    }

    /** It drops our handler. Each of its attempts is a call then, none without an ID. */
    @Test
    void retryAfterOursNeverMakesACallWithoutAnId() {
        requestsGet(status(404), status(404));
        Orders orders =
                target(install(feign(), fast().build()).addCapability(Resilience4jFeign.capability(retrying())));
        assertThat(orders.create("x")).isEqualTo(OK);
        assertThat(ids()).hasSize(3).doesNotContain("");
    }

    private static Capability retryingAndBreaking(CircuitBreaker breaker) {
        return Resilience4jFeign.capability(FeignDecorators.builder()
                .withRetry(threeTimes())
                .withCircuitBreaker(breaker)
                .build());
    }

    /** It is made for calls that wait: to it a call has ended well when there is a future. Ours goes on beneath. */
    @Test
    void resilience4jAddedBeforeOursNeverSeesAFutureComplete() {
        async = true;
        requestsGet(status(429), status(404));
        Orders orders = orders(builder -> builder.addCapability(retryingAndBreaking(breaker)));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignException.NotFound.class);
        assertThat(received()).hasSize(2);
        assertOneId();
        assertEnd(FAILED, 2);
        assertBreakerSaw(1, 0);
    }

    /** It drops our handler, and tries nothing again itself. */
    @Test
    void afterOursResilience4jLeavesAFutureItsIdAndOneAttempt() {
        async = true;
        alwaysGet(status(503));
        Orders orders = target(install(feign(), fast().build()).addCapability(retryingAndBreaking(breaker)));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignException.ServiceUnavailable.class);
        assertThat(received()).hasSize(1);
        assertOneId();
        assertBreakerSaw(1, 0);
    }

    @Test
    void builderOfResilience4jIsOneAsAnyOther() {
        alwaysGet(status(503));
        Orders orders = target(install(
                Resilience4jFeign.builder(breaking()).client(okHttp()).options(readTimeout(20_000)), fast().build()));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignException.ServiceUnavailable.class);
        assertThat(received()).hasSize(3);
        assertOneId();
        assertEnd(FAILED, 3);
        assertBreakerSaw(0, 1);
    }

    @ParameterizedTest
    @CsvSource({"true, false", "false, false", "true, true", "false, true"})
    void metersOfFeignCountCallsAndRequestsOnEitherSide(boolean before, boolean later) {
        async = later;
        attemptsUpTo(2, status(503));
        MicrometerCapability capability = new MicrometerCapability(meters);
        Orders orders = before
                ? orders(builder -> builder.addCapability(capability))
                : target(install(feign(), fast().build()).addCapability(capability));
        assertThat(orders.create("x")).isEqualTo(OK);
        assertOneId();
        assertEnd(SUCCEEDED, 3);
        assertThat(timed("feign.Client") + timed("feign.AsyncClient")).isEqualTo(3);
        assertThat(timed("feign.Feign") + timed("feign.AsyncFeign")).isEqualTo(1);
        orders.tick();
        assertThat(Set.copyOf(ids())).hasSize(2);
    }

    /** What measures hands no cancellation down: the request goes on, and its response is let go. */
    @Test
    void responseOfACallWhoseCancellationMetersSwallowIsClosed() {
        CompletableFuture<Response> request = new CompletableFuture<>();
        CountDownLatch closed = new CountDownLatch(1);
        AsyncOrders orders = IdempotentFeign.install(
                        AsyncFeign.builder()
                                .client((sent, options, context) -> request)
                                .addCapability(new MicrometerCapability(meters)),
                        fast().build())
                .target(new HardCodedTarget<>(AsyncOrders.class, "orders", provider.baseUrl()));
        CompletableFuture<String> response = orders.create("x");
        response.cancel(true);
        assertThat(request).isNotDone();
        request.complete(Response.builder()
                .status(200)
                .headers(Map.of())
                .request(Request.create(Request.HttpMethod.POST, "/orders", Map.of(), null, null, null))
                .body(
                        new ByteArrayInputStream(new byte[] {'o', 'k'}) {
                            @Override
                            public void close() {
                                closed.countDown();
                            }
                        },
                        2)
                .build());
        awaitLatch(closed);
        assertEnd(UNKNOWN, 1);
    }

    private long timed(String name) {
        return meters.find(name).timers().stream().mapToLong(Timer::count).sum();
    }
}
