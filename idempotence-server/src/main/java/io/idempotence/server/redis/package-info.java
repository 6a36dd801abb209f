/** Records in Redis: a single server, or a Redis Cluster. */
@NullMarked
package io.idempotence.server.redis;

import org.jspecify.annotations.NullMarked;
