/** The logical call: its ID, its attempts, and the decision about another one. Not API: it changes without notice. */
@NullMarked
package io.idempotence.client.internal.call;

import org.jspecify.annotations.NullMarked;
