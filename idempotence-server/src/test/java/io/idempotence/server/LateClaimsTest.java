package io.idempotence.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.FaultyStorage.Call;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.RecordState;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** Claims whose reply comes after their lease (T21). */
class LateClaimsTest {
    private static final Duration LEASE = Duration.ofMillis(50);

    private final IdempotenceStorage memory = IdempotenceStorage.inMemory();
    private final FaultyStorage storage = new FaultyStorage(memory);
    private final Idempotence idempotence = Idempotence.builder(storage)
            .policy(IdempotencePolicy.builder().lease(LEASE).build())
            .build();
    private final IdempotenceId id = IdempotenceId.of("order-1");
    private final StorageKey key = StorageKey.of("default", "", "execute", id);

    @AfterEach
    void close() {
        storage.before((call, which) -> {}).after((call, which) -> {});
        idempotence.close();
    }

    private static void takeLongerThanTheLease() {
        long begun = System.nanoTime();
        await().until(() -> System.nanoTime() - begun > LEASE.toNanos());
    }

    @Test
    @DisplayName("T21: a claim that came too late is given back although its repetition was never sent")
    void aLateClaimWhoseRepetitionWasNeverSentIsGivenBack() {
        AtomicInteger sent = new AtomicInteger();
        storage.before((call, which) -> {
                    if (call == Call.CLAIM && sent.incrementAndGet() == 2) {
                        throw StorageUnavailableException.notSent("no free connection", null);
                    }
                })
                .after((call, which) -> {
                    if (call == Call.CLAIM && sent.get() == 1) {
                        takeLongerThanTheLease();
                    }
                });
        assertThat(Refusals.refusalOf(() -> idempotence.execute(id, () -> "never")))
                .isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        await().until(() -> memory.find(key).orElseThrow().state() == RecordState.RELEASED);
    }
}
