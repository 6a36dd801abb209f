/** The seam between records and a driver of Redis: scripts, the meaning of errors, and what a server reports of itself. Internal. */
@NullMarked
package io.idempotence.server.redis.internal;

import org.jspecify.annotations.NullMarked;
