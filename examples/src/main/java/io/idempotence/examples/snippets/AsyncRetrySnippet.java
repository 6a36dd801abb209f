package io.idempotence.examples.snippets;

import feign.Headers;
import feign.RequestLine;
import io.github.resilience4j.retry.Retry;
import io.github.resilience4j.timelimiter.TimeLimiter;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.examples.payments.api.Payment;
import io.idempotence.examples.payments.api.PaymentOrder;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ScheduledExecutorService;
import java.util.function.BiConsumer;

/** The code of {@link RetrySnippet} for a client that returns futures. */
public final class AsyncRetrySnippet {
    private final Payments payments;
    private final ScheduledExecutorService timer;
    private final Retry retry;
    private final TimeLimiter limit;
    private final BiConsumer<PaymentOrder, IdempotenceId> book;

    AsyncRetrySnippet(
            Payments payments,
            ScheduledExecutorService timer,
            Retry retry,
            TimeLimiter limit,
            BiConsumer<PaymentOrder, IdempotenceId> book) {
        this.payments = payments;
        this.timer = timer;
        this.retry = retry;
        this.limit = limit;
        this.book = book;
    }

    /** The payment service, of {@code AsyncFeign}. */
    interface Payments {
        @RequestLine("POST /payments")
        @Headers("Content-Type: application/json")
        CompletableFuture<Payment> pay(PaymentOrder order);
    }

    // tag::snippet[]
    CompletionStage<Payment> pay(PaymentOrder order) {
        return IdempotenceScope.saving(
                id -> book.accept(order, id),
                () -> retry.executeCompletionStage(
                        timer, // on which later runs begin, so the scope is carried there
                        IdempotenceScope.carried(
                                () -> limit.executeCompletionStage(timer, () -> payments.pay(order)))));
    }
    // end::snippet[]
}
