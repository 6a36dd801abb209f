/**
 * The server half in front of servlets (Jakarta Servlet 6.0 and 6.1).
 *
 * <p>{@link io.idempotence.server.servlet.IdempotenceFilter} is where to start.
 */
@NullMarked
package io.idempotence.server.servlet;

import org.jspecify.annotations.NullMarked;
