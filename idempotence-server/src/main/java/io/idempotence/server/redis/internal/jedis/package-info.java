/** Redis through Jedis: how connections are opened and shared, and how a command is sent. Internal. */
@NullMarked
package io.idempotence.server.redis.internal.jedis;

import org.jspecify.annotations.NullMarked;
