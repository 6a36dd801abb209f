package io.idempotence.client.retry;

import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;

/** Tells an operator once that calls of one client leave the protection of their ID. Thread-safe. */
public final class LeavingWarning {
    private final Logger log;
    private final AtomicBoolean told = new AtomicBoolean();

    /** @param log of the client's public entry point, where an operator looks for it */
    public LeavingWarning(Logger log) {
        this.log = log;
    }

    /** A redirect took a call to {@code host}, another origin. */
    public void leavesWithoutId(String host) {
        if (told.compareAndSet(false, true)) {
            log.warn(
                    "A call was redirected to another origin, {}, and goes there without its ID: what it does there is NOT"
                            + " protected, and it is not tried again. Give the client the address of that origin",
                    host);
        }
    }
}
