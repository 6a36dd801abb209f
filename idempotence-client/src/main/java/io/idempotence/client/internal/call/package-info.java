/** One logical call: which ID it carries, its attempts, whether there is another one. Not API: it changes without notice. */
@NullMarked
package io.idempotence.client.internal.call;

import org.jspecify.annotations.NullMarked;
