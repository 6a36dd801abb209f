/** {@code idempotence}: finds, lists, resolves, deletes and counts records from a command line. */
@NullMarked
package io.idempotence.examples.operator;

import org.jspecify.annotations.NullMarked;
