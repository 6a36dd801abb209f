package io.idempotence.examples.job;

import feign.Feign;
import feign.FeignException;
import feign.Target.HardCodedTarget;
import feign.jackson.JacksonDecoder;
import feign.jackson.JacksonEncoder;
import feign.okhttp.OkHttpClient;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.feign.IdempotentFeign;
import io.idempotence.examples.payments.api.Payment;
import io.idempotence.examples.payments.api.PaymentOrder;
import io.idempotence.examples.payments.consumer.PaymentClient;
import java.nio.file.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A job that pays the orders of a book, each once. It may be killed at any moment and started again.
 *
 * <p>Killed before the ID is in the book: nothing was sent. Killed after that: the next run sends the same call under the same
 * ID, and the provider responds with the payment that was made, or makes it now.
 */
public final class PaymentJob {
    private static final Logger LOG = LoggerFactory.getLogger(PaymentJob.class);

    private final OrderBook book;
    private final PaymentClient payments;

    /**
     * A job.
     *
     * @param book the orders
     * @param payments where they are paid
     */
    public PaymentJob(OrderBook book, PaymentClient payments) {
        this.book = book;
        this.payments = payments;
    }

    /**
     * Runs the job once: {@code PaymentJob <file of the book> <URL of the payment service>}. Ends with 0 if every order is paid,
     * else with 1.
     *
     * @param args two of them
     */
    public static void main(String[] args) {
        try (OrderBook book = OrderBook.open(Path.of(args[0]))) {
            int left = new PaymentJob(book, payments(args[1])).run();
            System.exit(left == 0 ? 0 : 1);
        }
    }

    static PaymentClient payments(String url) {
        return IdempotentFeign.install(Feign.builder())
                .client(new OkHttpClient())
                .encoder(new JacksonEncoder())
                .decoder(new JacksonDecoder())
                .target(new HardCodedTarget<>(PaymentClient.class, "payments", url));
    }

    // tag::snippet[]
    /** Pays what is due, and returns how much is still due. */
    public int run() {
        for (DueOrder due : book.due()) {
            try {
                book.paid(due.order(), pay(due));
            } catch (FeignException e) {
                // Above all a FeignOutcomeUnknownException: the ID is in the book, so the next run asks again.
                LOG.warn("order {} is still due: {}", due.order().order(), e.getMessage());
            } catch (IllegalStateException e) {
                // The ID is too old: asking under it could pay again.
                LOG.error("order {} is for a person: {}", due.order().order(), e.getMessage());
            }
        }
        return book.due().size();
    }

    private Payment pay(DueOrder due) {
        PaymentOrder order = due.order();
        DueOrder.Sent sent = due.sent();
        return sent == null
                ? IdempotenceScope.saving(id -> book.sends(order, id), () -> payments.pay(order))
                : IdempotenceScope.resume(sent.id(), sent.at(), () -> payments.pay(order));
    }
    // end::snippet[]
}
