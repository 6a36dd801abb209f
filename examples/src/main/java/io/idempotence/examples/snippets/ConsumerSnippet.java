package io.idempotence.examples.snippets;

import feign.Feign;
import feign.jackson.JacksonDecoder;
import feign.jackson.JacksonEncoder;
import feign.okhttp.OkHttpClient;
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
    private final Map<PaymentOrder, Sent> toAskAgain = new ConcurrentHashMap<>();

    // tag::snippet[]
    private final PaymentClient payments = IdempotentFeign.install(Feign.builder()) // the one line
            .client(new OkHttpClient())
            .encoder(new JacksonEncoder())
            .decoder(new JacksonDecoder())
            .target(PaymentClient.class, "https://payments.example");

    void pay(PaymentOrder order) {
        try {
            Payment payment = payments.pay(order); // tried again if need be, always under one ID
            paid(order, payment);
        } catch (FeignOutcomeUnknownException e) { // the network won this time: keep the ID and its time
            toAskAgain.put(order, new Sent(e.id(), e.firstSentAt()));
        }
    }

    void askAgain(PaymentOrder order, Sent sent) { // minutes later, perhaps after a restart
        // The first answer, or the first payment.
        paid(order, IdempotenceScope.resume(sent.id(), sent.at(), () -> payments.pay(order)));
    }
    // end::snippet[]

    private record Sent(IdempotenceId id, Instant at) {}

    private void paid(PaymentOrder order, Payment payment) {
        System.out.println("order " + order.order() + " is paid by payment " + payment.number());
    }
}
