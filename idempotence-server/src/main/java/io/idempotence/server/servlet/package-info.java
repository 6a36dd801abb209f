/**
 * The servlet filter of the server half (Jakarta Servlet 6.0 and 6.1).
 *
 * <p>Start with {@link io.idempotence.server.servlet.IdempotenceFilter}.
 */
@NullMarked
package io.idempotence.server.servlet;

import org.jspecify.annotations.NullMarked;
