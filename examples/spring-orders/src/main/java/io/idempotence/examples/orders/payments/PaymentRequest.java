package io.idempotence.examples.orders.payments;

/** A payment to make. */
record PaymentRequest(long order, int cents) {}
