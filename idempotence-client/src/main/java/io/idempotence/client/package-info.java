/** The API for callers: configuration, the scope of an ID, events, the unknown outcome. Independent of HTTP client libraries. */
@NullMarked
package io.idempotence.client;

import org.jspecify.annotations.NullMarked;
