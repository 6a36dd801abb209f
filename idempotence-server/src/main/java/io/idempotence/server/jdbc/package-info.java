/** The storage in a relational database, optionally inside the business transaction. */
@NullMarked
package io.idempotence.server.jdbc;

import org.jspecify.annotations.NullMarked;
