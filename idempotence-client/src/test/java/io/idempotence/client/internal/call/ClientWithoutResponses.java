package io.idempotence.client.internal.call;

import io.idempotence.client.internal.http.Observation;
import io.idempotence.http.Refusal;

/** A client that never gets a response. */
class ClientWithoutResponses implements ClientAdapter {
    @Override
    public Object send(int attempt, Observation seen) {
        throw new AssertionError("sent");
    }

    @Override
    public Throwable refused(Refusal refusal, Observation seen, Throwable cause) {
        throw new AssertionError("no response");
    }

    @Override
    public Throwable unknown(Observation seen, Throwable cause) {
        throw new AssertionError("no response");
    }
}
