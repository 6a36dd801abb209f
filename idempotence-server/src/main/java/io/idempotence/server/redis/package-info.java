/** The storage in Redis: a single server, a primary behind Sentinels, or a Redis Cluster. */
@NullMarked
package io.idempotence.server.redis;

import org.jspecify.annotations.NullMarked;
