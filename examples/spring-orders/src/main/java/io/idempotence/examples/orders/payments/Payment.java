package io.idempotence.examples.orders.payments;

/** A payment that was made. */
record Payment(long number, long order, int cents) {}
