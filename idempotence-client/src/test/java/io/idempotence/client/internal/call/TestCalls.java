package io.idempotence.client.internal.call;

import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.internal.scope.CallerContext;
import io.idempotence.client.internal.scope.ScopeHistory;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.LoggerFactory;

/** Logical calls without an HTTP client. */
final class TestCalls {
    private TestCalls() {}

    /** Returns a call whose caller gives its ID. */
    static LogicalCall withId(Duration deadline) {
        ClientOperation operation = operation(null);
        CallIdentity identity = undecided(operation);
        identity.decide("POST", List.of("\"order-1\""), "create", () -> "/orders", () -> null);
        return new LogicalCall(operation, identity, deadline);
    }

    /** Returns an operation with the default settings. */
    static ClientOperation operation(@Nullable Boolean annotated) {
        return new ClientOperation(
                "orders",
                "create",
                "create",
                IdempotenceClientConfig.builder().build(),
                annotated,
                LoggerFactory.getLogger(TestCalls.class));
    }

    /** Returns the identity of a call that has made no request yet. */
    static CallIdentity undecided(ClientOperation operation) {
        return new CallIdentity(operation, operation::method, CallerContext.current(), ScopeHistory.ofOneCall());
    }
}
