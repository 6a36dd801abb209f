/** The client half in Spring: OpenFeign, {@code RestClient}, HTTP service clients and {@code RestTemplate}. */
@NullMarked
package io.idempotence.spring.client;

import org.jspecify.annotations.NullMarked;
