package io.idempotence.examples.orders.shop;

import feign.FeignException;
import feign.RetryableException;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.feign.FeignOutcomeUnknownException;
import io.idempotence.examples.orders.shop.OrderBook.Order;
import io.idempotence.examples.orders.shop.OrderBook.State;
import io.idempotence.examples.orders.shop.PaymentsClient.Payment;
import io.idempotence.examples.orders.shop.PaymentsClient.PaymentRequest;
import java.util.function.Supplier;
import org.springframework.stereotype.Service;

/** The checkout, which pays orders. It has no retry loop: the starter retries, always under the same ID. */
@Service
class Checkout {
    private final PaymentsClient payments;
    private final OrderBook book;

    Checkout(PaymentsClient payments, OrderBook book) {
        this.payments = payments;
        this.book = book;
    }

    void pay(Order order) {
        end(order, () -> IdempotenceScope.saving(id -> book.sends(order.number(), id), () -> send(order)));
    }

    /** Makes the same call again, under the same ID, after its outcome was unknown. */
    void payAgain(Order order) {
        IdempotenceId id = IdempotenceId.of(order.paymentCall());
        end(order, () -> IdempotenceScope.resume(id, order.paymentSentAt(), () -> send(order)));
    }

    private Payment send(Order order) {
        return payments.pay(new PaymentRequest(order.number(), order.cents()));
    }

    private void end(Order order, Supplier<Payment> call) {
        try {
            book.paid(order.number(), call.get().number());
        } catch (RetryableException e) { // not sent
            book.ended(order.number(), State.FAILED);
        } catch (FeignOutcomeUnknownException e) { // perhaps paid
            book.ended(order.number(), State.UNKNOWN);
        } catch (FeignException.FeignClientException e) { // the payment service's own no
            book.ended(order.number(), State.FAILED);
        } catch (FeignException e) { // no definite result either
            book.ended(order.number(), State.UNKNOWN);
        }
    }
}
