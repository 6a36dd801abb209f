/** What a caller sets and sees: configuration, the scope of an ID, events, the unknown outcome. Knows no HTTP client library. */
@NullMarked
package io.idempotence.client;

import org.jspecify.annotations.NullMarked;
