/** Code that the modules of this project share. Not for users; may change in any release. */
@NullMarked
package io.idempotence.internal;

import org.jspecify.annotations.NullMarked;
