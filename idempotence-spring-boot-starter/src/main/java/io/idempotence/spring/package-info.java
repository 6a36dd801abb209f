/** Both halves for Spring Boot: auto-configuration, properties, {@code @Idempotent} on beans, Actuator, forms. */
@NullMarked
package io.idempotence.spring;

import org.jspecify.annotations.NullMarked;
