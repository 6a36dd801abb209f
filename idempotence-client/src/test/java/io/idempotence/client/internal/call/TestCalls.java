package io.idempotence.client.internal.call;

import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.internal.scope.CallerContext;
import io.idempotence.client.internal.scope.ScopeHistory;
import java.time.Duration;
import java.util.List;
import org.slf4j.LoggerFactory;

/** Logical calls without an HTTP client. */
final class TestCalls {
    private TestCalls() {}

    /** Returns a call whose caller gives its ID. */
    static LogicalCall withId(Duration deadline) {
        ClientOperation operation = new ClientOperation(
                "orders",
                "create",
                "create",
                IdempotenceClientConfig.builder().build(),
                null,
                LoggerFactory.getLogger(TestCalls.class));
        CallIdentity identity =
                new CallIdentity(operation, operation::method, CallerContext.current(), ScopeHistory.ofOneCall());
        identity.decide("POST", List.of("\"order-1\""), "create", () -> "/orders", () -> null);
        return new LogicalCall(operation, identity, deadline);
    }
}
