package io.idempotence.examples.snippets;

import feign.FeignException;
import feign.Headers;
import feign.Param;
import feign.RequestLine;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.feign.FeignOutcomeUnknownException;
import io.idempotence.client.feign.FeignRequestRefusedException;
import io.idempotence.examples.payments.api.Payment;
import io.idempotence.examples.payments.api.PaymentOrder;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** A caller with a user in front of it, of docs/timed-out-calls.md. */
public final class CheckoutSnippet {
    private final Payments payments;
    private final Map<PaymentOrder, Open> open = new ConcurrentHashMap<>();

    CheckoutSnippet(Payments payments) {
        this.payments = payments;
    }

    /** The payment service, with a way to look. */
    interface Payments {
        @RequestLine("POST /payments")
        @Headers("Content-Type: application/json")
        Payment pay(PaymentOrder order);

        @RequestLine("GET /payments?order={order}")
        List<Payment> of(@Param("order") int order);
    }

    private record Open(IdempotenceId id, Instant firstSentAt) {}

    // tag::snippet[]
    /** The ID was made with the form and comes back with it, so that a second click is the same call. */
    String pay(PaymentOrder order, IdempotenceId formId) {
        if (open.containsKey(order)) { // the first click is in doubt, and a 401 now would not end that
            return sendAgain(order);
        }
        try {
            return paid(order, IdempotenceScope.with(formId, () -> payments.pay(order)));
        } catch (FeignOutcomeUnknownException e) {
            open.put(order, new Open(e.id(), e.firstSentAt())); // in the database, with the order
            return "We do not know yet whether your payment was made. Please do not pay again: look here in a minute.";
        } catch (FeignRequestRefusedException e) { // refused now; an earlier click may have paid
            return look(order);
        } catch (FeignException.UnprocessableEntity e) { // the provider's own no; a 401 or 429 would not be one
            return declined(order);
        }
    }

    /** The user looks again, or a timer does. */
    String look(PaymentOrder order) {
        List<Payment> made = payments.of(order.order()); // a GET: ask what became of it
        if (!made.isEmpty()) {
            return paid(order, made.get(0));
        }
        return open.containsKey(order)
                ? "We still do not know. You may wait, or send the same payment again: it is made once."
                : "We found no payment yet. You may submit the same form again: it pays once.";
    }

    /** The user wants to be certain: the same call, under the same ID. */
    String sendAgain(PaymentOrder order) {
        Open call = open.get(order);
        if (call == null) {
            return look(order);
        }
        try {
            return paid(order, IdempotenceScope.resume(call.id(), call.firstSentAt(), () -> payments.pay(order)));
        } catch (FeignOutcomeUnknownException e) {
            return "We still do not know. Please do not pay again: look here in a minute.";
        } catch (FeignRequestRefusedException e) {
            return look(order);
        } catch (FeignException.UnprocessableEntity e) {
            return declined(order);
        }
    }
    // end::snippet[]

    private String paid(PaymentOrder order, Payment payment) {
        open.remove(order);
        return "Paid: payment " + payment.number();
    }

    private String declined(PaymentOrder order) {
        open.remove(order);
        return "Your payment was declined.";
    }
}
