package io.idempotence.server.servlet;

import io.idempotence.http.IdempotencyKeyHeader;
import io.idempotence.server.IdempotencePolicy;
import jakarta.servlet.http.HttpServletRequest;
import java.time.Duration;
import java.util.List;
import java.util.Set;

/** What {@link IdempotenceFilter.Builder} was told. */
record FilterConfiguration(
        IdempotencePolicy policy,
        List<OperationPolicy> operations,
        Set<String> methods,
        boolean keyRequired,
        IdempotencyKeyHeader header,
        RequestScope scope,
        int maxRequestBody,
        int maxResponseBody,
        long maxMemory,
        Duration maxWait,
        BodyForm bodyForm,
        FormRules.Limits formLimits,
        List<String> keptHeaders,
        String problemBase) {
    /** The policy of the operation that a request asks for: the first that covers it. */
    IdempotencePolicy policyFor(HttpServletRequest request) {
        if (operations.isEmpty()) {
            return policy;
        }
        String path = OriginalPath.inContext(request);
        for (OperationPolicy operation : operations) {
            if (operation.covers(request.getMethod(), path)) {
                return operation.policy();
            }
        }
        return policy;
    }
}
