package io.idempotence.it.client;

import feign.AsyncFeign;
import feign.BaseBuilder;
import java.util.concurrent.CancellationException;
import org.junit.jupiter.api.Tag;

/** {@link OkHttpAttemptContract} for futures, with Feign's client for OkHttp, which is asynchronous as well. */
@Tag("all")
class AsyncOkHttpAttemptIT extends OkHttpAttemptContract {
    @Override
    BaseBuilder<?, ?> builder() {
        return AsyncFeign.builder().client(okHttp());
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
