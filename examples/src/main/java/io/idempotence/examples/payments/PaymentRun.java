package io.idempotence.examples.payments;

import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.feign.FeignOutcomeUnknownException;
import io.idempotence.examples.payments.api.Payment;
import io.idempotence.examples.payments.api.PaymentOrder;
import io.idempotence.examples.payments.consumer.PaymentClient;
import io.idempotence.examples.payments.consumer.PaymentClients;
import io.idempotence.examples.payments.network.FaultPlan;
import io.idempotence.examples.payments.network.LossyNetwork;
import io.idempotence.examples.payments.provider.Ledger;
import io.idempotence.examples.payments.provider.PaymentProvider;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.IntConsumer;
import org.HdrHistogram.ConcurrentHistogram;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A run that pays the orders 1 to {@code calls} over a network, in one mode, and counts what happened. Used once. */
final class PaymentRun implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(PaymentRun.class);

    static final int CONCURRENCY = 32;
    static final int PROVIDERS = 2;

    /** Enough for a network that loses everything every now and then; the end of a demo whose pair is broken. */
    private static final int ROUNDS_OF_ASKING_AGAIN = 20;

    private static final IdempotencePolicy POLICY = IdempotencePolicy.builder()
            .lease(Duration.ofSeconds(30))
            .retention(Duration.ofMinutes(10))
            .build();

    private final Mode mode;
    private final int calls;
    private final Progress progress;
    private final Ledger ledger = new Ledger();
    private final List<Idempotence> idempotences = new ArrayList<>();
    private final List<PaymentProvider> providers = new ArrayList<>();
    private final LossyNetwork network;
    private final PaymentClient client;
    private final ExecutorService consumers = Executors.newFixedThreadPool(CONCURRENCY);

    private final ConcurrentHistogram micros = new ConcurrentHistogram(3);
    private final Queue<Payment> responses = new ConcurrentLinkedQueue<>();
    /** Orders whose consumer knows nothing, with the ID to ask again with, if there is one. */
    private final ConcurrentMap<Integer, Optional<IdempotenceId>> unknown = new ConcurrentHashMap<>();

    private PaymentRun(
            Mode mode, int calls, FaultPlan faults, DemoStorage storage, String namespace, Progress progress) {
        this.mode = mode;
        this.calls = calls;
        this.progress = progress;
        for (int i = 1; i <= PROVIDERS; i++) {
            String instance = "provider-" + i;
            if (mode == Mode.PAIR) {
                Idempotence idempotence = Idempotence.builder(storage.connect())
                        .namespace(namespace)
                        .policy(POLICY)
                        .build();
                idempotences.add(idempotence);
                providers.add(PaymentProvider.startProtected(instance, ledger, idempotence));
            } else {
                providers.add(PaymentProvider.startPlain(instance, ledger));
            }
        }
        network = LossyNetwork.open(
                faults,
                PaymentClients.READ_TIMEOUT,
                providers.stream().map(PaymentProvider::port).toList());
        client =
                mode == Mode.PAIR ? PaymentClients.idempotent(network.url()) : PaymentClients.plainRetry(network.url());
    }

    static Result run(Mode mode, int calls, FaultPlan faults, DemoStorage storage, String namespace, Progress progress)
            throws InterruptedException {
        try (PaymentRun run = new PaymentRun(mode, calls, faults, storage, namespace, progress)) {
            return run.run();
        }
    }

    private Result run() throws InterruptedException {
        List<Integer> orders = new ArrayList<>();
        for (int order = 1; order <= calls; order++) {
            orders.add(order);
        }
        concurrently(orders, this::payOnce);
        int unknownOutcomes = unknown.size();
        for (int round = 0; round < ROUNDS_OF_ASKING_AGAIN && mode == Mode.PAIR && !unknown.isEmpty(); round++) {
            concurrently(List.copyOf(unknown.keySet()), this::askAgain);
        }
        // Some requests are still on their way, or in a handler nobody waits for. They pay too.
        network.close();
        for (int i = 0; i < PROVIDERS; i++) {
            providers.get(i).awaitHandled(network.forwarded(i));
        }
        return Result.of(
                mode,
                calls,
                network.requests(),
                ledger.payments(),
                List.copyOf(responses),
                unknownOutcomes,
                unknown.size(),
                percentile(50),
                percentile(99));
    }

    private void concurrently(List<Integer> orders, IntConsumer work) throws InterruptedException {
        List<Future<?>> all = new ArrayList<>();
        for (int order : orders) {
            all.add(consumers.submit(() -> work.accept(order)));
        }
        for (Future<?> one : all) {
            try {
                one.get();
            } catch (ExecutionException e) {
                throw new IllegalStateException("the demo itself failed", e.getCause());
            }
        }
    }

    private void payOnce(int order) {
        long start = System.nanoTime();
        pay(order);
        micros.recordValue((System.nanoTime() - start) / 1000);
        progress.step();
    }

    private void askAgain(int order) {
        Optional<IdempotenceId> id = unknown.getOrDefault(order, Optional.empty());
        id.ifPresent(same -> {
            unknown.remove(order);
            IdempotenceScope.with(same, () -> pay(order));
        });
    }

    private void pay(int order) {
        try {
            responses.add(client.pay(new PaymentOrder(order, 100L + order)));
        } catch (FeignOutcomeUnknownException e) {
            // What a consumer would store with its order.
            unknown.put(order, Optional.of(e.id()));
        } catch (RuntimeException e) {
            if (mode == Mode.PAIR) {
                LOG.error("order {}: the call ended in a way the pair should not allow here", order, e);
            }
            unknown.put(order, Optional.empty());
        }
    }

    private Duration percentile(double percentile) {
        return Duration.ofNanos(1000 * micros.getValueAtPercentile(percentile));
    }

    @Override
    public void close() {
        consumers.shutdownNow();
        network.close();
        providers.forEach(PaymentProvider::close);
        idempotences.forEach(Idempotence::close);
    }
}
