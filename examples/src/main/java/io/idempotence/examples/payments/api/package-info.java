/** The requests and responses between consumer and provider. */
@NullMarked
package io.idempotence.examples.payments.api;

import org.jspecify.annotations.NullMarked;
