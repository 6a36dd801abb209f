package io.idempotence.it.client;

/** {@link AttemptContract}, and what only OkHttp does. */
abstract class OkHttpAttemptContract extends AttemptContract {
    @Override
    final boolean readsAbsurdSecondsBeside(int status) {
        return status != 408 && status != 503;
    }
}
