package io.idempotence.it.client;

import feign.AsyncFeign;
import feign.BaseBuilder;
import java.util.concurrent.CancellationException;
import org.junit.jupiter.api.Tag;

/** {@link AttemptContract} for futures over Feign's default client: a thread of the client waits, not the caller. */
@Tag("all")
class AsyncDefaultClientAttemptIT extends AttemptContract {
    @Override
    BaseBuilder<?, ?> builder() {
        return AsyncFeign.builder().client(waitingClient());
    }

    /** It has streamed the body, and plain Feign reports an error. */
    @Override
    boolean makesAGetOfABody() {
        return false;
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

    @Override
    boolean sendsInTheThreadOfTheCaller() {
        return false;
    }
}
