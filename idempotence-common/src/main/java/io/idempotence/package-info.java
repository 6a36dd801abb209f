/** The ID of a logical call, how it is made, and the annotation that marks what must carry one. */
@NullMarked
package io.idempotence;

import org.jspecify.annotations.NullMarked;
