package io.idempotence.examples.payments.api;

/**
 * A payment that was made.
 *
 * @param number the payment's number; every payment has another one
 * @param order the order it pays
 * @param cents how much
 * @param madeBy the provider instance that made it
 */
public record Payment(int number, int order, long cents, String madeBy) {}
