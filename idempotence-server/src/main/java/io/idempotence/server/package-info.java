/**
 * The server half without any transport: who may run, what is recorded, what a later attempt gets.
 *
 * <p>{@link io.idempotence.server.Idempotence} is where to start.
 */
@NullMarked
package io.idempotence.server;

import org.jspecify.annotations.NullMarked;
