/** A job that pays orders, and pays each once however often it is killed. */
@NullMarked
package io.idempotence.examples.job;

import org.jspecify.annotations.NullMarked;
