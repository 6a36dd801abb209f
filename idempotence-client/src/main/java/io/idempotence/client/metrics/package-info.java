/** The client half in Micrometer. */
@NullMarked
package io.idempotence.client.metrics;

import org.jspecify.annotations.NullMarked;
