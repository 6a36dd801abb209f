/** The consumer: a shop with an order form, which calls the payment service over OpenFeign. */
package io.idempotence.examples.orders.shop;
