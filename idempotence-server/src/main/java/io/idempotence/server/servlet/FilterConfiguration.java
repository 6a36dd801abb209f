package io.idempotence.server.servlet;

import io.idempotence.http.IdempotenceHeaders;
import io.idempotence.http.IdempotencyKeyHeader;
import io.idempotence.server.IdempotencePolicy;
import jakarta.servlet.http.HttpServletRequest;
import java.time.Duration;
import java.util.List;
import java.util.Set;

/** The settings of a filter, as {@link IdempotenceFilterBuilder} collects them. */
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
    /** Methods that must change nothing. */
    static final Set<String> SAFE_METHODS = Set.of("GET", "HEAD", "OPTIONS", "TRACE");

    /**
     * Whether a request is protected. A caller that sends an ID with a PUT or DELETE relies on it: letting it through would run it
     * unprotected (promise P6).
     */
    boolean protects(HttpServletRequest request) {
        String method = request.getMethod();
        return methods.contains(method)
                || (!SAFE_METHODS.contains(method) && request.getHeader(IdempotenceHeaders.IDEMPOTENCY_KEY) != null);
    }

    boolean requiresKey(HttpServletRequest request) {
        return keyRequired && methods.contains(request.getMethod());
    }

    /** Returns the policy of the first operation that covers a request, or else that of the filter. */
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
