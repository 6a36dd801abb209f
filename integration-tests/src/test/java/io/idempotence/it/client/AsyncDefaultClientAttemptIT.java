package io.idempotence.it.client;

import feign.AsyncFeign;
import feign.BaseBuilder;
import java.util.concurrent.CancellationException;

/** A thread waits where the caller does not. */
class AsyncDefaultClientAttemptIT extends AttemptContract {
    @Override
    BaseBuilder<?, ?> builder() {
        return AsyncFeign.builder().client(waitingClient());
    }

    /** It waits for a future, and cancels it. */
    @Override
    Class<? extends Throwable> whatInterruptedCallersSee() {
        return CancellationException.class;
    }

    @Override
    boolean interruptedCallersWaitForTheResponse() {
        return false;
    }
}
