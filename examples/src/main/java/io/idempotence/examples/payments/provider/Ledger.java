package io.idempotence.examples.payments.provider;

import io.idempotence.examples.payments.api.Payment;
import io.idempotence.examples.payments.api.PaymentOrder;
import java.util.ArrayList;
import java.util.List;

/**
 * The payments that were made. It is the account where the money leaves, so it takes every order: one order paid twice is
 * two entries. Thread-safe.
 */
public final class Ledger {
    private final List<Payment> payments = new ArrayList<>();

    /**
     * Makes a payment.
     *
     * @param order what to pay
     * @param madeBy the provider instance
     * @return the new payment
     */
    public synchronized Payment pay(PaymentOrder order, String madeBy) {
        Payment payment = new Payment(payments.size() + 1, order.order(), order.cents(), madeBy);
        payments.add(payment);
        return payment;
    }

    /**
     * Every payment made so far, in order.
     *
     * @return a snapshot
     */
    public synchronized List<Payment> payments() {
        return List.copyOf(payments);
    }
}
