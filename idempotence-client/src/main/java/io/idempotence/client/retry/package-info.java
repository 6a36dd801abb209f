/** The machinery that integrations share: outcomes, the retry decision, deadlines. Not API: it changes without notice. */
@NullMarked
package io.idempotence.client.retry;

import org.jspecify.annotations.NullMarked;
