package io.idempotence.examples.job;

import io.idempotence.IdempotenceId;
import io.idempotence.examples.payments.api.PaymentOrder;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * An order that is not known to be paid.
 *
 * @param order what to pay
 * @param sent the call that may have paid it, or null if none was made
 */
record DueOrder(PaymentOrder order, @Nullable Sent sent) {
    /**
     * A call whose outcome is not recorded.
     *
     * @param id its ID
     * @param at shortly before it was first sent
     */
    record Sent(IdempotenceId id, Instant at) {}
}
