/** The tools of operators: the Actuator endpoint, the console page, and observations. */
@NullMarked
package io.idempotence.spring.actuate;

import org.jspecify.annotations.NullMarked;
