package io.idempotence.client.feign;

import feign.RetryableException;
import feign.Retryer;

/** The client's own Retryer, limited to calls without an ID. Calls with one are retried above it, where the ID is kept. */
record RetryerWithoutId(Retryer delegate, CallLookup calls) implements Retryer {
    @Override
    public void continueOrPropagate(RetryableException failure) {
        FeignAttempt attempt = calls.attemptOf(failure.hasRequest() ? failure.request() : null);
        if (attempt == null || attempt.call().carriesId()) {
            throw failure;
        }
        delegate.continueOrPropagate(failure);
    }

    @Override
    public Retryer clone() {
        return new RetryerWithoutId(delegate.clone(), calls);
    }
}
