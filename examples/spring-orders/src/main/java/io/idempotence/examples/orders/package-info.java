/** A shop and its payment service over a network that can be broken: {@link io.idempotence.examples.orders.OrdersDemo} starts everything. */
package io.idempotence.examples.orders;
