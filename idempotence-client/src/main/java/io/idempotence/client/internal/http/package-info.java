/** One HTTP exchange: what was observed of it, and what ends it. Not API: it changes without notice. */
@NullMarked
package io.idempotence.client.internal.http;

import org.jspecify.annotations.NullMarked;
