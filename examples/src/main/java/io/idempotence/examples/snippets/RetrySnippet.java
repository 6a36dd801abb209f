package io.idempotence.examples.snippets;

import io.github.resilience4j.retry.Retry;
import io.github.resilience4j.retry.RetryConfig;
import io.github.resilience4j.timelimiter.TimeLimiter;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.examples.payments.api.Payment;
import io.idempotence.examples.payments.api.PaymentOrder;
import io.idempotence.examples.payments.consumer.PaymentClient;
import java.time.Duration;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeoutException;
import java.util.function.BiConsumer;

/** A retry and a time limit of the application's own, around a client. */
public final class RetrySnippet {
    private final PaymentClient payments;
    private final ExecutorService threads;
    private final TimeLimiter limit;
    private final BiConsumer<PaymentOrder, IdempotenceId> book;

    RetrySnippet(
            PaymentClient payments,
            ExecutorService threads,
            TimeLimiter limit,
            BiConsumer<PaymentOrder, IdempotenceId> book) {
        this.payments = payments;
        this.threads = threads;
        this.limit = limit;
        this.book = book;
    }

    // tag::snippet[]
    private final Retry retry = Retry.of(
            "payments",
            RetryConfig.custom()
                    .maxAttempts(3)
                    .waitDuration(Duration.ofMillis(200))
                    .retryOnException(e -> e instanceof OutcomeUnknown || e instanceof TimeoutException)
                    .build());

    Payment pay(PaymentOrder order) throws Exception {
        return IdempotenceScope.saving( // outside of the retry: one ID for all its runs
                id -> book.accept(order, id),
                () -> retry.executeCallable(() -> limit.executeFutureSupplier(() ->
                        threads.submit(IdempotenceScope.carried(() -> payments.pay(order)))))); // and on this thread
    }
    // end::snippet[]
}
