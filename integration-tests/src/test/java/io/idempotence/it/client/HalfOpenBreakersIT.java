package io.idempotence.it.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import feign.BaseBuilder;
import feign.Feign;
import feign.FeignException;
import io.github.resilience4j.circuitbreaker.CircuitBreaker;
import io.github.resilience4j.circuitbreaker.CircuitBreaker.State;
import io.github.resilience4j.circuitbreaker.CircuitBreakerConfig;
import io.github.resilience4j.feign.FeignDecorators;
import io.github.resilience4j.feign.Resilience4jFeign;
import io.idempotence.client.IdempotenceClientAttemptEvent;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceClientListener;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import okhttp3.Interceptor;
import okhttp3.Response;
import org.junit.jupiter.api.Test;

/** Retries of a call while a circuit breaker of Resilience4j is half open and lets few requests through. */
class HalfOpenBreakersIT extends WireMockTestBase {
    /** What was observed after each attempt, before the wait for the next one. */
    private final List<Object> afterAttempts = new CopyOnWriteArrayList<>();

    @Override
    BaseBuilder<?, ?> builder() {
        return Feign.builder().client(okHttp());
    }

    private static CircuitBreaker halfOpen(int permitted) {
        CircuitBreaker breaker = CircuitBreaker.of(
                "orders",
                CircuitBreakerConfig.custom()
                        .permittedNumberOfCallsInHalfOpenState(permitted)
                        .failureRateThreshold(60)
                        .waitDurationInOpenState(Duration.ofHours(1))
                        .build());
        breaker.transitionToOpenState();
        breaker.transitionToHalfOpenState();
        return breaker;
    }

    /** Whether another call would be let through now. */
    private static boolean isFree(CircuitBreaker breaker) {
        boolean free = breaker.tryAcquirePermission();
        if (free) {
            breaker.releasePermission();
        }
        return free;
    }

    private IdempotenceClientListener noting(Supplier<Object> observation) {
        return new IdempotenceClientListener() {
            @Override
            public void onCall(IdempotenceClientEvent event) {
                // Only attempts matter here.
            }

            @Override
            public void onAttempt(IdempotenceClientAttemptEvent event) {
                afterAttempts.add(observation.get());
            }
        };
    }

    /** Around single requests: within the HTTP client. */
    private Orders within(CircuitBreaker breaker) {
        Interceptor guard = chain -> {
            breaker.acquirePermission();
            long start = System.nanoTime();
            try {
                Response response = chain.proceed(chain.request());
                if (response.code() >= 500) {
                    breaker.onError(System.nanoTime() - start, TimeUnit.NANOSECONDS, new IOException("failed"));
                } else {
                    breaker.onSuccess(System.nanoTime() - start, TimeUnit.NANOSECONDS);
                }
                return response;
            } catch (IOException e) {
                breaker.onError(System.nanoTime() - start, TimeUnit.NANOSECONDS, e);
                throw e;
            }
        };
        return target(install(
                Feign.builder()
                        .client(new feign.okhttp.OkHttpClient(
                                okHttp.newBuilder().addInterceptor(guard).build())),
                fast().listener(noting(() -> isFree(breaker))).build()));
    }

    @Test
    void breakerAroundTheProxyHoldsOnePermitForACallAndItsWaits() {
        attemptsUpTo(2, status(503));
        CircuitBreaker breaker = halfOpen(1);
        FeignDecorators breaking =
                FeignDecorators.builder().withCircuitBreaker(breaker).build();
        Orders orders = orders(
                fast().listener(noting(() -> isFree(breaker))),
                builder -> builder.addCapability(Resilience4jFeign.capability(breaking)));

        assertThat(orders.create("x")).isEqualTo(OK);

        assertThat(received()).hasSize(3);
        assertThat(afterAttempts).containsExactly(false, false, false);
        assertThat(breaker.getState()).isEqualTo(State.CLOSED);
    }

    @Test
    void breakerWithinTheClientHoldsNoPermitWhileARetryWaits() {
        attemptsUpTo(1, status(503));
        CircuitBreaker breaker = halfOpen(2);

        assertThat(within(breaker).create("x")).isEqualTo(OK);

        assertThat(received()).hasSize(2);
        assertThat(afterAttempts).containsExactly(true, true);
        assertThat(breaker.getState()).isEqualTo(State.CLOSED);
    }

    @Test
    void callWhoseRetriesABreakerWithinTheClientRefusesEndsAsItsHandlerDid() {
        attemptsUpTo(1, status(503));
        CircuitBreaker breaker = halfOpen(1);

        Orders orders = within(breaker);
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignException.ServiceUnavailable.class);

        assertThat(received()).hasSize(1);
        assertThat(breaker.getState()).isEqualTo(State.OPEN);
    }
}
