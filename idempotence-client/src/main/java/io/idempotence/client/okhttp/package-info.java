/** Idempotence IDs for OkHttp without Feign. Start with {@link io.idempotence.client.okhttp.IdempotentOkHttp}. */
@NullMarked
package io.idempotence.client.okhttp;

import org.jspecify.annotations.NullMarked;
