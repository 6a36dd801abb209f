/** Where a call finds its ID and its doubt again: by thread, by object. Not API: it changes without notice. */
@NullMarked
package io.idempotence.client.internal.scope;

import org.jspecify.annotations.NullMarked;
