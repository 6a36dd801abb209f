package io.idempotence.client.okhttp;

import io.idempotence.InboundRequest;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.retry.LayerAbove;
import org.jspecify.annotations.Nullable;

/**
 * Where a call is made.
 *
 * @param scope the scope
 * @param inbound the request whose handler makes it
 * @param layerAbove true for an attempt of another client half, which gives the ID and retries
 */
record Caller(@Nullable IdempotenceScope scope, @Nullable InboundRequest inbound, boolean layerAbove) {
    static final Caller NOBODY = new Caller(null, null, false);

    static Caller current() {
        IdempotenceScope scope = IdempotenceScope.current().orElse(null);
        InboundRequest inbound = InboundRequest.current().orElse(null);
        boolean above = LayerAbove.isSending();
        return scope == null && inbound == null && !above ? NOBODY : new Caller(scope, inbound, above);
    }

    /** This one, and for what it lacks the other. */
    Caller or(Caller other) {
        return new Caller(
                scope == null ? other.scope : scope,
                inbound == null ? other.inbound : inbound,
                layerAbove || other.layerAbove);
    }
}
