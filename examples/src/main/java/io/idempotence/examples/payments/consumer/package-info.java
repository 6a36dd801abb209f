/** The service that asks for payments. One line adds the client half. */
@NullMarked
package io.idempotence.examples.payments.consumer;

import org.jspecify.annotations.NullMarked;
