/** Counts events with Micrometer, which the application brings. */
@NullMarked
package io.idempotence.server.metrics;

import org.jspecify.annotations.NullMarked;
