/** What the programs among the examples know about where they are started. */
@NullMarked
package io.idempotence.examples.console;

import org.jspecify.annotations.NullMarked;
