/** The ID and the doubt of a call, looked up by thread or by object. Not API: it changes without notice. */
@NullMarked
package io.idempotence.client.internal.scope;

import org.jspecify.annotations.NullMarked;
