package io.idempotence.client.okhttp;

import io.idempotence.InboundRequest;
import io.idempotence.client.IdempotenceScope;
import org.jspecify.annotations.Nullable;

/** Where a call is made: the scope, and the request whose handler makes it. */
record Caller(@Nullable IdempotenceScope scope, @Nullable InboundRequest inbound) {
    static final Caller NOBODY = new Caller(null, null);

    static Caller current() {
        IdempotenceScope scope = IdempotenceScope.current().orElse(null);
        InboundRequest inbound = InboundRequest.current().orElse(null);
        return scope == null && inbound == null ? NOBODY : new Caller(scope, inbound);
    }

    /** This one, and for what it lacks the other. */
    Caller or(Caller other) {
        return new Caller(scope == null ? other.scope : scope, inbound == null ? other.inbound : inbound);
    }
}
