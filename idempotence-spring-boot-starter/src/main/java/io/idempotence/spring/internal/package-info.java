/** Code that the parts of the starter share: faults of the set-up and their analyses, and the names of properties. */
@NullMarked
package io.idempotence.spring.internal;

import org.jspecify.annotations.NullMarked;
