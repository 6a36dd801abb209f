/** The contract of storages, and the in-memory storage. */
@NullMarked
package io.idempotence.server.storage;

import org.jspecify.annotations.NullMarked;
