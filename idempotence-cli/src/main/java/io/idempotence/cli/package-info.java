/** {@code idempotence}: finds, lists, resolves, deletes and counts records from a command line. */
@NullMarked
package io.idempotence.cli;

import org.jspecify.annotations.NullMarked;
