package io.idempotence.server;

import io.github.resilience4j.circuitbreaker.CircuitBreaker;
import io.idempotence.internal.DaemonThreads;
import io.idempotence.server.storage.IdempotenceStorage;
import java.util.concurrent.ThreadFactory;
import java.util.function.Function;

/** Instances of {@link Idempotence} with parts that no application can choose. */
final class UnusualParts {
    private UnusualParts() {}

    /** For a storage that loses more calls than a real one. */
    static Idempotence withoutBreaker(IdempotenceStorage storage, IdempotencePolicy policy) {
        CircuitBreaker breaker = StorageGuard.breaker(storage.slowCall());
        breaker.transitionToDisabledState();
        return over(storage, policy, new Events(null), breaker, DaemonThreads::named);
    }

    /** For a process that cannot always start a thread. */
    static Idempotence withThreads(
            IdempotenceStorage storage,
            IdempotencePolicy policy,
            IdempotenceListener listener,
            Function<String, ThreadFactory> threads) {
        return over(storage, policy, new Events(listener), StorageGuard.breaker(storage.slowCall()), threads);
    }

    private static Idempotence over(
            IdempotenceStorage storage,
            IdempotencePolicy policy,
            Events events,
            CircuitBreaker breaker,
            Function<String, ThreadFactory> threads) {
        StorageGuard guard = new StorageGuard(
                events,
                EngineParts.probe(storage, "default"),
                breaker,
                System::nanoTime,
                threads.apply("idempotence-probes"));
        return new Idempotence("default", policy, EngineParts.over(storage, guard, events, 10_000, threads));
    }
}
