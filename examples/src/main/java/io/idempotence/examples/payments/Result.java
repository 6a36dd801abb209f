package io.idempotence.examples.payments;

import io.idempotence.examples.payments.api.Payment;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * The result of one mode.
 *
 * @param mode what was measured
 * @param calls how many orders were to be paid, one call each
 * @param httpAttempts how many HTTP requests the network saw for them
 * @param paymentsMade entries in the ledger
 * @param doublePayments entries beyond the first of their order
 * @param lostPayments orders without any entry
 * @param unknownOutcomes calls that ended without telling their consumer whether the payment was made
 * @param unsettled orders whose consumer knows no more at the end, when the pair has asked again; of a plain retry, all unknown ones
 * @param wrongResponses responses that name a payment which the ledger does not have for that order
 * @param p50 half of all calls took no longer
 * @param p99 99 of 100 calls took no longer
 */
record Result(
        Mode mode,
        int calls,
        int httpAttempts,
        int paymentsMade,
        int doublePayments,
        int lostPayments,
        int unknownOutcomes,
        int unsettled,
        int wrongResponses,
        Duration p50,
        Duration p99) {

    /** Orders are numbered from 1 to {@code calls}. */
    static Result of(
            Mode mode,
            int calls,
            int httpAttempts,
            List<Payment> ledger,
            List<Payment> responses,
            int unknownOutcomes,
            int unsettled,
            Duration p50,
            Duration p99) {
        Set<Integer> paid = new HashSet<>();
        ledger.forEach(payment -> paid.add(payment.order()));
        Set<Payment> entries = Set.copyOf(ledger);
        int wrong = (int) responses.stream()
                .filter(response -> !entries.contains(response))
                .count();
        return new Result(
                mode,
                calls,
                httpAttempts,
                ledger.size(),
                ledger.size() - paid.size(),
                calls - paid.size(),
                unknownOutcomes,
                unsettled,
                wrong,
                p50,
                p99);
    }

    /** Whether every order was paid exactly once and its consumer was told so. */
    boolean isFlawless() {
        return doublePayments == 0 && lostPayments == 0 && unsettled == 0 && wrongResponses == 0;
    }
}
