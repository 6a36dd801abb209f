/** The contract of storages, and the in-memory storage. Promises (P) and transitions (T) are those of {@code docs/design.md}. */
@NullMarked
package io.idempotence.server.storage;

import org.jspecify.annotations.NullMarked;
