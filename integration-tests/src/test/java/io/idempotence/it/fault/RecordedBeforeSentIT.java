package io.idempotence.it.fault;

import static io.idempotence.it.container.Http.refusal;
import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.IdempotenceId;
import io.idempotence.it.container.Http;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.TomcatServer;
import io.idempotence.server.Idempotence;
import io.idempotence.server.redis.RedisOfAClass;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageKey;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** A slow storage under load: every response that was sent has its record. */
class RecordedBeforeSentIT {
    @RegisterExtension
    static final RedisOfAClass redis = new RedisOfAClass();

    private final AtomicInteger recorded = new AtomicInteger();
    private final AtomicInteger unrecorded = new AtomicInteger();
    private final AtomicInteger refused = new AtomicInteger();

    /** Posts at a rate that does not depend on the responses, and looks for the record of each response when it has arrived. */
    private void send(int requests, Duration every, Duration latency, int status) throws Exception {
        String namespace = "t-" + UUID.randomUUID();
        try (IdempotenceStorage real = redis.connect();
                IdempotenceStorage looks = redis.connect();
                Idempotence idempotence = Idempotence.builder(new FaultyStorage(real)
                                .before((call, key) -> LockSupport.parkNanos(latency.toNanos()))
                                // A busy machine must not look like an outage, in which records follow later.
                                .slowCall(Duration.ofMinutes(1)))
                        .namespace(namespace)
                        .build();
                ServletServer server = TomcatServer.start(
                        context -> {
                            IdempotenceFilter.install(context, idempotence, "/payments");
                            context.addServlet("handler", ServletServer.servlet((request, response) -> {
                                        if (status >= 400) {
                                            response.sendError(status);
                                        } else {
                                            response.setStatus(status);
                                        }
                                    }))
                                    .addMapping("/payments");
                        },
                        null)) {
            List<CompletableFuture<Void>> calls = new ArrayList<>();
            CountDownLatch left = new CountDownLatch(requests);
            ScheduledExecutorService clock = Executors.newSingleThreadScheduledExecutor();
            clock.scheduleAtFixedRate(
                    () -> {
                        if (left.getCount() > 0) {
                            String id = UUID.randomUUID().toString();
                            calls.add(Http.sendAsync(Http.request("POST", server.uri("/payments"), id, "{}"))
                                    .thenAccept(response -> look(looks, namespace, id, response, status)));
                            left.countDown();
                        }
                    },
                    0,
                    every.toNanos(),
                    TimeUnit.NANOSECONDS);
            left.await();
            clock.shutdown();
            CompletableFuture.allOf(calls.toArray(new CompletableFuture<?>[0])).join();
        }
    }

    private void look(
            IdempotenceStorage looks, String namespace, String id, HttpResponse<byte[]> response, int expected) {
        if (refusal(response) != null) {
            refused.incrementAndGet();
            return;
        }
        assertThat(response.statusCode()).isEqualTo(expected);
        Optional<State> state = looks.find(StorageKey.of(namespace, "", "", IdempotenceId.of(id)))
                .map(record -> record.state());
        (state.equals(Optional.of(State.COMPLETED)) ? recorded : unrecorded).incrementAndGet();
    }

    @Test
    @DisplayName("T23: 535 failures per second on a storage that takes 5 ms leave none unrecorded")
    void errorsAtTheRateOfTheIssueAreAllRecorded() throws Exception {
        send(1_600, Duration.ofNanos(1_000_000_000 / 535), Duration.ofMillis(5), 422);
        assertThat(unrecorded).hasValue(0);
        assertThat(recorded.get() + refused.get()).isEqualTo(1_600);
        // The others are refused, if the machine is too slow for the rate.
        assertThat(recorded).hasValueGreaterThan(160);
    }

    @Test
    @DisplayName(
            "T10: 200 callers on a storage that takes 500 ms: some are refused, none gets a response without a record")
    void twoHundredCallersOfASlowStorageGetNoResponseWithoutARecord() throws Exception {
        send(600, Duration.ofMillis(5), Duration.ofMillis(500), 201);
        assertThat(unrecorded).hasValue(0);
        assertThat(recorded).hasValueGreaterThan(60);
    }
}
