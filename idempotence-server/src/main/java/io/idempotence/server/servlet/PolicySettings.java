package io.idempotence.server.servlet;

import io.idempotence.server.IdempotencePolicy;
import java.time.Duration;

/** The settings that the requests of one policy may have. They are made once, not for each request. */
record PolicySettings(RequestSettings requiringId, RequestSettings withOptionalId, RequestSettings unprotected) {
    static PolicySettings of(IdempotencePolicy policy, Duration maxWait) {
        return new PolicySettings(
                new RequestSettings(true, true, policy, maxWait),
                new RequestSettings(true, false, policy, maxWait),
                new RequestSettings(false, false, policy, maxWait));
    }

    RequestSettings of(boolean isProtected, boolean requiresId) {
        if (!isProtected) {
            return unprotected;
        }
        return requiresId ? requiringId : withOptionalId;
    }
}
