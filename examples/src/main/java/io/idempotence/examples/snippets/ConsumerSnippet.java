package io.idempotence.examples.snippets;

import feign.Feign;
import feign.jackson.JacksonDecoder;
import feign.jackson.JacksonEncoder;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.feign.FeignOutcomeUnknownException;
import io.idempotence.client.feign.IdempotentFeign;
import io.idempotence.examples.payments.api.Payment;
import io.idempotence.examples.payments.api.PaymentOrder;
import io.idempotence.examples.payments.consumer.PaymentClient;
import java.time.Instant;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The consumer's side of the README. */
public final class ConsumerSnippet {
    private final Map<PaymentOrder, Sent> open = new ConcurrentHashMap<>();

    // tag::snippet[]
    private final PaymentClient payments = IdempotentFeign.install(Feign.builder()) // the one line
            .encoder(new JacksonEncoder())
            .decoder(new JacksonDecoder())
            .target(PaymentClient.class, "https://payments.example");

    void pay(PaymentOrder order) {
        try {
            paid(order, payments.pay(order)); // retried when needed, always under one ID
        } catch (FeignOutcomeUnknownException e) { // perhaps paid: ask again later under the same ID
            open.put(order, new Sent(e.id(), e.firstSentAt()));
        }
    }
    // end::snippet[]

    void askAgain(PaymentOrder order, Sent sent) { // the first result, or the first payment
        paid(order, IdempotenceScope.resume(sent.id(), sent.at(), () -> payments.pay(order)));
    }

    private record Sent(IdempotenceId id, Instant at) {}

    private void paid(PaymentOrder order, Payment payment) {
        System.out.println("order " + order.order() + " is paid by payment " + payment.number());
    }
}
