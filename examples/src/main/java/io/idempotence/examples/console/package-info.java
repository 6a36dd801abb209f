/** The surroundings in which the programs among the examples are started. */
@NullMarked
package io.idempotence.examples.console;

import org.jspecify.annotations.NullMarked;
