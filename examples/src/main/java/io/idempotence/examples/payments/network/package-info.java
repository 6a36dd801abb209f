/** What lies between consumer and provider, and loses things. */
@NullMarked
package io.idempotence.examples.payments.network;

import org.jspecify.annotations.NullMarked;
