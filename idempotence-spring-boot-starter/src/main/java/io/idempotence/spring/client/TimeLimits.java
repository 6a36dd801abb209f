package io.idempotence.spring.client;

import feign.Target;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.feign.IdempotentFeign;
import io.idempotence.spring.internal.SpringDurations;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.cloud.client.circuitbreaker.CircuitBreaker;
import org.springframework.cloud.client.circuitbreaker.CircuitBreakerFactory;
import org.springframework.cloud.openfeign.CircuitBreakerNameResolver;
import org.springframework.util.ReflectionUtils;

/**
 * The time limits of circuit breakers around Feign clients. A limit that is shorter than the deadline of a call gives the call up while a
 * request may be in flight, and leaves its outcome unknown.
 */
final class TimeLimits {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotentFeign.class);

    private final IdempotenceClientConfig config;
    private final CircuitBreakerFactory<?, ?> breakers;
    private final CircuitBreakerNameResolver names;
    private final boolean grouped;
    private final Set<String> warned = ConcurrentHashMap.newKeySet();

    TimeLimits(
            IdempotenceClientConfig config,
            CircuitBreakerFactory<?, ?> breakers,
            CircuitBreakerNameResolver names,
            boolean grouped) {
        this.config = config;
        this.breakers = breakers;
        this.names = names;
        this.grouped = grouped;
    }

    /** Warns, once for each client, about a limit that is shorter than the deadline. */
    void check(Target<?> target, Method method, List<String> httpMethods) {
        IdempotenceClientConfig own = config.forMethod(target.name(), method.getName());
        if (!own.enabled() || httpMethods.stream().noneMatch(own.methods()::contains)) {
            return;
        }
        String id = names.resolveCircuitBreakerName(target.name(), target, method);
        Duration limit = limitOf(grouped ? breakers.create(id, target.name()) : breakers.create(id))
                .orElse(null);
        if (limit != null && limit.compareTo(own.deadline()) < 0 && warned.add(target.name())) {
            LOG.warn(
                    "The time limiter of circuit breaker {} gives up calls of Feign client {} after {}, but they may take {}"
                            + " (idempotence.client.deadline): a call that is cut while a request is in flight ends with an unknown"
                            + " outcome, or in the fallback. Set resilience4j.timelimiter.instances.{}.timeout-duration above the"
                            + " deadline, lower idempotence.client.clients.{}.deadline, or set"
                            + " spring.cloud.circuitbreaker.resilience4j.disable-time-limiter=true",
                    id,
                    target.name(),
                    SpringDurations.text(limit),
                    SpringDurations.text(own.deadline()),
                    id,
                    target.name());
        }
    }

    /** Resilience4j's types may be absent, and the limiter has no accessor. */
    private static Optional<Duration> limitOf(CircuitBreaker breaker) {
        Object inner = breaker;
        while (SpringInternals.field(inner, "delegate") instanceof CircuitBreaker delegate) {
            inner = delegate;
        }
        Method load = ReflectionUtils.findMethod(inner.getClass(), "loadTimeLimiter");
        if (load == null) {
            return Optional.empty();
        }
        ReflectionUtils.makeAccessible(load);
        return ReflectionUtils.invokeMethod(load, inner) instanceof Optional<?> limiter
                ? limiter.map(one -> get(one, "getTimeLimiterConfig"))
                        .map(settings -> (Duration) get(settings, "getTimeoutDuration"))
                : Optional.empty();
    }

    private static @Nullable Object get(Object owner, String getter) {
        Method method = ReflectionUtils.findMethod(owner.getClass(), getter);
        if (method == null) {
            return null;
        }
        ReflectionUtils.makeAccessible(method);
        return ReflectionUtils.invokeMethod(method, owner);
    }
}
