/** What a storage must do, and the storage that lives in this process's memory. */
@NullMarked
package io.idempotence.server.storage;

import org.jspecify.annotations.NullMarked;
