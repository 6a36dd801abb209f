/** The network between the shop and the payment service. */
package io.idempotence.examples.orders.network;
