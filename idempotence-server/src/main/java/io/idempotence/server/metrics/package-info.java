/** Micrometer metrics of the server half. */
@NullMarked
package io.idempotence.server.metrics;

import org.jspecify.annotations.NullMarked;
