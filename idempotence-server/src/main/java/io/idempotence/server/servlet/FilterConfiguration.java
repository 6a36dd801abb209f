package io.idempotence.server.servlet;

import io.idempotence.http.IdempotencyKeyHeader;
import io.idempotence.server.IdempotencePolicy;
import java.time.Duration;
import java.util.List;
import java.util.Set;

/** What {@link IdempotenceFilter.Builder} was told. */
record FilterConfiguration(
        IdempotencePolicy policy,
        Set<String> methods,
        boolean keyRequired,
        IdempotencyKeyHeader header,
        RequestScope scope,
        int maxRequestBody,
        int maxResponseBody,
        Duration maxWait,
        BodyForm bodyForm,
        List<String> keptHeaders,
        String problemBase) {}
