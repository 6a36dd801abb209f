package io.idempotence.examples.payments.api;

/**
 * A request to pay an order, once.
 *
 * @param order the order's number
 * @param cents how much
 */
public record PaymentOrder(int order, long cents) {}
