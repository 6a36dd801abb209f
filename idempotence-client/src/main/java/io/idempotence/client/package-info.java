/**
 * The API for callers: configuration, the scope of an ID, events, the unknown outcome. Independent of HTTP client libraries.
 *
 * <p>Promises (P) are those of {@code docs/design.md}.
 */
@NullMarked
package io.idempotence.client;

import org.jspecify.annotations.NullMarked;
