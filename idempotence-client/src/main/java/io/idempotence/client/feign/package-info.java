/** Idempotence IDs for Feign clients. Start with {@link io.idempotence.client.feign.IdempotentFeign}. */
@NullMarked
package io.idempotence.client.feign;

import org.jspecify.annotations.NullMarked;
