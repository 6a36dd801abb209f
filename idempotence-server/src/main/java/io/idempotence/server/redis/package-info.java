/**
 * The storage in Redis: a single server, a primary behind Sentinels, or a Redis Cluster. Promises (P) and transitions (T) are those of
 * {@code docs/design.md}.
 */
@NullMarked
package io.idempotence.server.redis;

import org.jspecify.annotations.NullMarked;
