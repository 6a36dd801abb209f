package io.idempotence.client.internal.call;

import io.github.resilience4j.core.EventProcessor;
import io.github.resilience4j.core.IntervalBiFunction;
import io.github.resilience4j.retry.Retry;
import io.github.resilience4j.retry.RetryConfig;
import io.github.resilience4j.retry.RetryRegistry;
import io.github.resilience4j.retry.event.RetryEvent;
import io.idempotence.client.IdempotenceClientConfig;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.DoubleSupplier;
import org.jspecify.annotations.Nullable;

/** The Resilience4j retries of a client's methods. Thread-safe. */
public final class Retries {
    private final String client;
    private final Retry standard;
    private final @Nullable RetryRegistry registry;
    private final ReentrantLock replacing = new ReentrantLock();

    public Retries(String client, IdempotenceClientConfig config) {
        this.client = client;
        this.registry = config.retryRegistry().orElse(null);
        RetryConfig retry = RetryConfig.custom()
                .maxAttempts(config.maxAttempts())
                .intervalBiFunction(
                        backoff(config, () -> ThreadLocalRandom.current().nextDouble()))
                .retryOnException(failure -> true)
                .build();
        this.standard = Retry.of(client, RetryDecision.govern(retry));
    }

    /** The retry that is in the registry for a method now. */
    public Retry of(String method) {
        RetryRegistry from = registry;
        if (from != null) {
            for (String name : List.of(client + "#" + method, client, "idempotence")) {
                Optional<Retry> found = from.find(name);
                if (found.isPresent()) {
                    return RetryDecision.isGoverned(found.get()) ? found.get() : govern(from, name, found.get());
                }
            }
        }
        return standard;
    }

    private Retry govern(RetryRegistry from, String name, Retry found) {
        replacing.lock();
        try {
            Retry now = from.find(name).orElse(found);
            if (RetryDecision.isGoverned(now)) {
                return now;
            }
            Retry governed = Retry.of(now.getName(), RetryDecision.govern(now.getRetryConfig()), now.getTags());
            forwardEvents(governed, now);
            from.replace(name, governed);
            return governed;
        } finally {
            replacing.unlock();
        }
    }

    /** Forwards events, because consumers that subscribed before the replacement have the old instance. */
    @SuppressWarnings("unchecked")
    private static void forwardEvents(Retry governed, Retry replaced) {
        if (replaced.getEventPublisher() instanceof EventProcessor<?> processor) {
            EventProcessor<RetryEvent> old = (EventProcessor<RetryEvent>) processor;
            governed.getEventPublisher().onEvent(old::processEvent);
        }
    }

    /** The wait function: exponential, capped, with the given share of randomness. */
    static IntervalBiFunction<Object> backoff(IdempotenceClientConfig config, DoubleSupplier random) {
        double first = config.waitBound().toMillis();
        double cap = config.maxWait().toMillis();
        double multiplier = config.multiplier();
        double jitter = config.jitter();
        return (attempt, result) -> {
            double bound = Math.min(cap, first * Math.pow(multiplier, attempt - 1));
            return Math.round(bound * (1 - jitter * random.getAsDouble()));
        };
    }
}
