/** The ID of a logical call, its generators, and the annotation for methods whose calls carry one. */
@NullMarked
package io.idempotence;

import org.jspecify.annotations.NullMarked;
