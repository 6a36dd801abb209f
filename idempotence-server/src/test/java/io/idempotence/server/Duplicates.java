package io.idempotence.server;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;

/** Attempts that wait while another one runs. */
public final class Duplicates {
    private Duplicates() {}

    /** Claims as a transport does whose caller has patience. */
    public static CompletableFuture<Decision> claim(
            Idempotence idempotence, IdempotentCall call, IdempotencePolicy policy, Duration patience) {
        Engine engine = idempotence.engine();
        Decision decision = engine.claim(call, policy);
        return decision instanceof Decision.Substitute substitute
                ? waiting(engine.await(substitute, call, policy, patience))
                : CompletableFuture.completedFuture(decision);
    }

    /** The same future, because a test may cancel it. Tests only read from it. */
    @SuppressWarnings("unchecked")
    private static CompletableFuture<Decision> waiting(CompletableFuture<? extends Decision> waiter) {
        return (CompletableFuture<Decision>) waiter;
    }
}
