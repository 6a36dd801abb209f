/** A demo to run: payments over a network that loses responses, with a plain retry and with the pair. Start at {@code PaymentsDemo}. */
@NullMarked
package io.idempotence.examples.payments;

import org.jspecify.annotations.NullMarked;
