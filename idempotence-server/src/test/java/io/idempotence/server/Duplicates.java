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
        return engine.await(engine.claim(call, policy), call, policy, patience);
    }
}
