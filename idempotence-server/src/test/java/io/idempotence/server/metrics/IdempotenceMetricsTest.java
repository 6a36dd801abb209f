package io.idempotence.server.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.IdempotenceId;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.storage.IdempotenceStorage;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.Tag;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.Arrays;
import java.util.Locale;
import java.util.UUID;
import org.junit.jupiter.api.Test;

class IdempotenceMetricsTest {
    private final SimpleMeterRegistry registry = new SimpleMeterRegistry();

    @Test
    void countsEachEventUnderItsName() {
        IdempotenceMetrics metrics = IdempotenceMetrics.of(registry);
        for (IdempotenceEvent event : IdempotenceEvent.values()) {
            assertThat(count(event)).isZero();
            for (int times = 0; times <= event.ordinal(); times++) {
                metrics.onEvent(event, new IdempotenceId("id-" + times));
            }
        }

        for (IdempotenceEvent event : IdempotenceEvent.values()) {
            assertThat(count(event)).isEqualTo(event.ordinal() + 1);
        }
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
        assertThat(registry.getMeters())
                .extracting(Meter::getId)
                .allSatisfy(id -> {
                    assertThat(id.getName()).isEqualTo("idempotence.server.events");
                    assertThat(id.getTags()).extracting(Tag::getKey).containsExactly("event");
                })
                .extracting(id -> id.getTag("event"))
                .containsExactlyInAnyOrderElementsOf(Arrays.stream(IdempotenceEvent.values())
                        .map(event -> event.name().toLowerCase(Locale.ROOT))
                        .toList());
    }

    private double count(IdempotenceEvent event) {
        return registry.get("idempotence.server.events")
                .tag("event", event.name().toLowerCase(Locale.ROOT))
                .counter()
                .count();
    }
}
