/** The code the README shows, compiled. */
@NullMarked
package io.idempotence.examples.snippets;

import org.jspecify.annotations.NullMarked;
