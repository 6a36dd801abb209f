package io.idempotence.server.servlet;

import io.idempotence.http.IdempotenceHeaders;
import io.idempotence.http.IdempotencyKeyHeader;
import io.idempotence.server.IdempotencePolicy;
import jakarta.servlet.http.HttpServletRequest;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The settings of a filter, as {@link IdempotenceFilterBuilder} collects them. */
record FilterConfiguration(
        PolicySettings usual,
        List<OperationPolicy> operations,
        Set<String> methods,
        boolean idRequired,
        IdempotencyKeyHeader header,
        RequestScope scope,
        int maxRequestBody,
        int maxResponseBody,
        long maxMemory,
        BodyComparison bodyComparison,
        FormRules.Limits formLimits,
        List<String> keptHeaders,
        String problemBase) {
    /**
     * The settings of the requests that a method and a URL pattern cover.
     *
     * @param method empty for all methods
     */
    record OperationPolicy(String method, UrlPattern pattern, PolicySettings settings) {
        boolean covers(String requestMethod, String path) {
            return (method.isEmpty() || method.equals(requestMethod)) && pattern.covers(path);
        }
    }

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

    /** Methods that must change nothing. */
    static final Set<String> SAFE_METHODS = Set.of("GET", "HEAD", "OPTIONS", "TRACE");

    /** Returns the settings of a request; null if it is not protected. */
    @Nullable
    RequestSettings settingsOf(HttpServletRequest request) {
        String method = request.getMethod();
        if (SAFE_METHODS.contains(method)) {
            return null;
        }
        boolean isListed = methods.contains(method);
        // A caller that sends an ID with a PUT or DELETE relies on it: it must not run unprotected (P6).
        boolean isProtected = isListed || !keyLines(request).isEmpty();
        RequestSettings settings = settingsFor(request).of(isProtected, isListed && idRequired);
        RequestSettings chosen = settings.chosen(request);
        return chosen.isProtected() ? chosen : null;
    }

    /** Returns the settings of the protected requests of a method and path. */
    RequestSettings settingsOf(String method, String path) {
        return settingsFor(method, path).of(true, methods.contains(method) && idRequired);
    }

    private PolicySettings settingsFor(HttpServletRequest request) {
        return operations.isEmpty() ? usual : settingsFor(request.getMethod(), OriginalPath.inContext(request));
    }

    /** Returns the settings of the first operation that covers a request, or else those of the filter. */
    private PolicySettings settingsFor(String method, String path) {
        for (OperationPolicy operation : operations) {
            if (operation.covers(method, path)) {
                return operation.settings();
            }
        }
        return usual;
    }

    /** The lines of the key. A filter in front may have added one by overriding {@code getHeader} or {@code getHeaders} alone. */
    static List<String> keyLines(HttpServletRequest request) {
        List<String> lines = Collections.list(request.getHeaders(IdempotenceHeaders.IDEMPOTENCY_KEY));
        String only = lines.isEmpty() ? request.getHeader(IdempotenceHeaders.IDEMPOTENCY_KEY) : null;
        return only == null ? lines : List.of(only);
    }
}
