/** Micrometer metrics of the client half. */
@NullMarked
package io.idempotence.client.metrics;

import org.jspecify.annotations.NullMarked;
