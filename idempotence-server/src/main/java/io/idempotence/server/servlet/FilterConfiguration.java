package io.idempotence.server.servlet;

import io.idempotence.http.IdempotencyKeyHeader;
import io.idempotence.server.IdempotencePolicy;
import jakarta.servlet.http.HttpServletRequest;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.function.Function;

/** What {@link IdempotenceFilter.Builder} was told. */
record FilterConfiguration(
        IdempotencePolicy policy,
        Set<String> methods,
        boolean keyRequired,
        IdempotencyKeyHeader header,
        Function<HttpServletRequest, String> scope,
        int maxRequestBody,
        int maxResponseBody,
        Duration maxWait,
        List<String> keptHeaders,
        String problemBase) {}
