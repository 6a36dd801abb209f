/** Shared by the modules of this project; not for users, may change in any release. */
@NullMarked
package io.idempotence.internal;

import org.jspecify.annotations.NullMarked;
