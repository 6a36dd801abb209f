/** What both halves say to each other over HTTP: headers, the grammar of the ID, refusals. */
@NullMarked
package io.idempotence.http;

import org.jspecify.annotations.NullMarked;
