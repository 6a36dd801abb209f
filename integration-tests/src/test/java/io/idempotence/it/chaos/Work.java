package io.idempotence.it.chaos;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * The work that a call asks of the provider: the request's body.
 *
 * @param kind how the handler ends
 */
record Work(String call, Kind kind, int millisBefore, int millisAfter) {
    enum Kind {
        DONE,
        /** A business failure, with no effect. */
        REJECTED,
        /** A system failure at the first execution, with no effect; the ID is released, and the next one is done. */
        FAILS_FIRST
    }

    String body() {
        return call + ',' + kind + ',' + millisBefore + ',' + millisAfter;
    }

    static Work of(String body) {
        String[] parts = body.split(",", -1);
        return new Work(parts[0], Kind.valueOf(parts[1]), Integer.parseInt(parts[2]), Integer.parseInt(parts[3]));
    }

    void pause(int millis) {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
        for (long left = end - System.nanoTime(); left > 0; left = end - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }
}
