/** The HTTP contract of both halves: headers, the grammar of the ID, refusals. */
@NullMarked
package io.idempotence.http;

import org.jspecify.annotations.NullMarked;
