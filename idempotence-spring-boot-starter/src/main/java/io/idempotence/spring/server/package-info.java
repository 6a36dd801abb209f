/** The server half for Spring Boot: properties, the choice of the storage, the filter, and health. */
@NullMarked
package io.idempotence.spring.server;

import org.jspecify.annotations.NullMarked;
