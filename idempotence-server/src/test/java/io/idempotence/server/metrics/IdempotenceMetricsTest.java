package io.idempotence.server.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.server.ExecutionRefusedException;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.IdempotenceListener;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.IdempotenceStorage;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.Tag;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

class IdempotenceMetricsTest {
    private final SimpleMeterRegistry registry = new SimpleMeterRegistry();

    @Test
    void countsEachEventUnderItsName() {
        IdempotenceMetrics metrics = IdempotenceMetrics.of(registry);
        List<IdempotenceEvent> events = List.of(IdempotenceEvent.values());
        for (int i = 0; i < events.size(); i++) {
            assertThat(count(events.get(i))).isZero();
            for (int times = 0; times <= i; times++) {
                metrics.onEvent(events.get(i), new IdempotenceId("id-" + times));
            }
        }

        for (int i = 0; i < events.size(); i++) {
            assertThat(count(events.get(i))).isEqualTo(i + 1);
        }
    }

    @Test
    void theGaugeShowsWhetherTheStorageResponds() {
        IdempotenceMetrics metrics = IdempotenceMetrics.of(registry);
        assertThat(available()).isEqualTo(1);
        metrics.onStorage(IdempotenceListener.StorageState.UNAVAILABLE);
        assertThat(available()).isZero();
        metrics.onStorage(IdempotenceListener.StorageState.AVAILABLE);
        assertThat(available()).isEqualTo(1);
    }

    private double available() {
        return registry.get(IdempotenceMetrics.STORAGE_AVAILABLE).gauge().value();
    }

    @Test
    void thousandsOfIdsMakeNoMoreMetersThanThereAreEvents() throws Exception {
        try (Idempotence idempotence = Idempotence.builder(IdempotenceStorage.inMemory())
                .namespace("payments")
                .listener(IdempotenceMetrics.of(registry))
                .build()) {
            for (int i = 0; i < 2_000; i++) {
                IdempotenceId id = new IdempotenceId(UUID.randomUUID().toString());
                idempotence.execute(id, () -> "done");
                idempotence.execute(id, () -> "done");
            }
        }

        assertThat(count(IdempotenceEvent.CLAIMED)).isEqualTo(2_000);
        assertThat(count(IdempotenceEvent.REPLAYED)).isEqualTo(2_000);
        assertThat(registry.getMeters().stream()
                        .map(Meter::getId)
                        .filter(id -> !id.getName().equals("idempotence.server.overhead"))
                        .filter(id -> !id.getName().equals("idempotence.server.storage.available")))
                .allSatisfy(id -> {
                    assertThat(id.getName()).isEqualTo("idempotence.server.events");
                    assertThat(id.getTags()).extracting(Tag::getKey).containsExactly("event");
                })
                .extracting(id -> id.getTag("event"))
                .containsExactlyInAnyOrderElementsOf(Arrays.stream(IdempotenceEvent.values())
                        .map(event -> event.name().toLowerCase(Locale.ROOT))
                        .toList());
    }

    @Test
    void timesWhatIsAddedToEachAttemptAndNotItsHandler() throws Exception {
        FaultyStorage slow = new FaultyStorage(IdempotenceStorage.inMemory());
        slow.before((call, key) -> {
            if (call != FaultyStorage.Call.RENEW) {
                takeAtLeast(Duration.ofMillis(20));
            }
        });
        IdempotenceId id = new IdempotenceId("order-1");
        AtomicReference<Duration> handler = new AtomicReference<>();
        AtomicReference<Duration> refusal = new AtomicReference<>();
        Duration run;
        Duration replay;
        try (Idempotence idempotence = Idempotence.builder(slow)
                .listener(IdempotenceMetrics.of(registry))
                .build()) {
            run = took(() -> idempotence.execute(id, () -> {
                handler.set(took(() -> {
                    takeAtLeast(Duration.ofMillis(100));
                    refusal.set(took(() -> assertThatThrownBy(() -> idempotence.execute(id, () -> "never"))
                            .isInstanceOf(ExecutionRefusedException.class)));
                    return "done";
                }));
                return "done";
            }));
            replay = took(() -> idempotence.execute(id, () -> "never"));
        }

        assertThat(registry.getMeters().stream()
                        .map(Meter::getId)
                        .filter(meter -> meter.getName().equals("idempotence.server.overhead")))
                .allSatisfy(meter ->
                        assertThat(meter.getTags()).extracting(Tag::getKey).containsExactly("outcome"))
                .extracting(meter -> meter.getTag("outcome"))
                .containsExactlyInAnyOrder("run", "replay", "refuse");
        assertOverhead("run", Duration.ofMillis(40), run.minus(handler.get()));
        assertOverhead("replay", Duration.ofMillis(20), replay);
        assertOverhead("refuse", Duration.ofMillis(20), refusal.get());
    }

    private void assertOverhead(String outcome, Duration atLeast, Duration atMost) {
        Timer timer = registry.get("idempotence.server.overhead")
                .tag("outcome", outcome)
                .timer();
        assertThat(timer.count()).as(outcome).isEqualTo(1);
        assertThat(Duration.ofNanos((long) timer.totalTime(TimeUnit.NANOSECONDS)))
                .as(outcome)
                .isBetween(atLeast, atMost);
    }

    private static Duration took(Callable<?> call) throws Exception {
        long start = System.nanoTime();
        call.call();
        return Duration.ofNanos(System.nanoTime() - start);
    }

    private static void takeAtLeast(Duration duration) {
        long start = System.nanoTime();
        await().pollInterval(Duration.ofMillis(1)).until(() -> System.nanoTime() - start >= duration.toNanos());
    }

    private double count(IdempotenceEvent event) {
        return registry.get("idempotence.server.events")
                .tag("event", event.name().toLowerCase(Locale.ROOT))
                .counter()
                .count();
    }
}
