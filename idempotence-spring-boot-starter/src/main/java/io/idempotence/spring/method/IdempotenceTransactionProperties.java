package io.idempotence.spring.method;

import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * The properties {@code idempotence.transactions.*}. An unknown one fails the start.
 *
 * @param neverReleaseAfterCommit Whether an ID is never released after a commit in its execution. Without it, an operation that fails after
 *     a commit may run again.
 */
@ConfigurationProperties(prefix = "idempotence.transactions", ignoreUnknownFields = false)
record IdempotenceTransactionProperties(
        @DefaultValue("true") boolean neverReleaseAfterCommit) {}
