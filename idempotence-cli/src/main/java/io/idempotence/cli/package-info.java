/** The command-line tool {@code idempotence}, which finds, lists, resolves, deletes and counts records. */
@NullMarked
package io.idempotence.cli;

import org.jspecify.annotations.NullMarked;
