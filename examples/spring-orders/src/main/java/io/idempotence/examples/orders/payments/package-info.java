/** The provider: a payment service that is protected by the starter. */
package io.idempotence.examples.orders.payments;
