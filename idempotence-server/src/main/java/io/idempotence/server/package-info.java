/**
 * The server half without any transport: which attempt runs, what is recorded, what later attempts get.
 *
 * <p>Start at {@link io.idempotence.server.Idempotence}. Promises (P) and transitions (T) are those of {@code docs/design.md}.
 */
@NullMarked
package io.idempotence.server;

import org.jspecify.annotations.NullMarked;
