/** The service that makes payments. One line adds the server half. */
@NullMarked
package io.idempotence.examples.payments.provider;

import org.jspecify.annotations.NullMarked;
