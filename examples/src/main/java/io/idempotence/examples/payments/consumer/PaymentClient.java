package io.idempotence.examples.payments.consumer;

import feign.Headers;
import feign.RequestLine;
import io.idempotence.examples.payments.api.Payment;
import io.idempotence.examples.payments.api.PaymentOrder;

/** The payment service as its consumer sees it. */
public interface PaymentClient {
    /**
     * Pays an order.
     *
     * @param order what to pay
     * @return the payment
     */
    @RequestLine("POST /payments")
    @Headers("Content-Type: application/json")
    Payment pay(PaymentOrder order);
}
