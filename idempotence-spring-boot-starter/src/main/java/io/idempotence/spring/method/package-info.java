/** {@code @Idempotent} on handlers and bean methods, and transactions. */
@NullMarked
package io.idempotence.spring.method;

import org.jspecify.annotations.NullMarked;
