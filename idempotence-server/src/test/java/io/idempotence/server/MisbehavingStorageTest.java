package io.idempotence.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import ch.qos.logback.classic.spi.ILoggingEvent;
import io.idempotence.IdempotenceId;
import io.idempotence.internal.DaemonThreads;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.FaultyStorage.Call;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** Claims under which nothing ran, in a storage that throws exceptions that it must not throw (T21). */
class MisbehavingStorageTest {
    private static final Duration LEASE = Duration.ofMillis(200);

    private final IdempotenceStorage memory = IdempotenceStorage.inMemory();
    private final FaultyStorage storage = new FaultyStorage(memory);
    private final List<String> told = new CopyOnWriteArrayList<>();
    private final Events events = new Events((event, which) -> told.add(event + " " + which.value()));
    private final StorageGuard guard = new StorageGuard(events, () -> {}, Duration.ofSeconds(1));
    private final BackgroundWrites giveBacks = new BackgroundWrites(
            events, guard, DaemonThreads.named("idempotence-test"), 1, IdempotenceEvent.STORAGE_ERROR);
    private final StorageClaims claims = new StorageClaims(storage, guard, events, giveBacks);
    private final IdempotenceId id = IdempotenceId.of("order-1");
    private final StorageKey key = StorageKey.of("default", "", "", id);

    @AfterEach
    void close() {
        storage.before((call, which) -> {}).after((call, which) -> {});
        giveBacks.close();
        guard.close();
    }

    private static RuntimeException bug() {
        return new IllegalStateException("a bug of the storage");
    }

    /** Each claim is stored, and its reply cannot be read. */
    private void breakTheReplies() {
        storage.after((call, which) -> {
            if (call == Call.CLAIM) {
                throw bug();
            }
        });
    }

    private void awaitWithoutDelays(Callable<Boolean> condition) {
        await().until(() -> {
            giveBacks.flush();
            return condition.call();
        });
    }

    private State state() {
        return memory.find(key).orElseThrow().state();
    }

    @Test
    @DisplayName("T21: a claim is given back a few times, then its lease ends; one ERROR has its record and what to do")
    void aClaimIsGivenBackAFewTimes() {
        try (CapturedLog log = CapturedLog.of(Idempotence.class)) {
            breakTheReplies();
            assertThatThrownBy(() -> claims.claimForExecution(id, Claims.request(key, LEASE)))
                    .hasMessage("a bug of the storage");

            awaitWithoutDelays(() -> !giveBacks.isAwaiting());

            assertThat(storage.count(Call.CLAIM)).isEqualTo(1 + StorageClaims.MAX_BUGS_IN_A_ROW);
            assertThat(told).containsExactly("STORAGE_ERROR order-1");
            assertThat(log.errors()).hasSize(1);
            ILoggingEvent error = log.errors().get(0);
            assertThat(error.getFormattedMessage())
                    .contains(key.value(), "bug", "abandoned", "resolve")
                    .doesNotContain("order-1");
            assertThat(error.getThrowableProxy().getMessage()).isEqualTo("a bug of the storage");
            assertThat(error.getMDCPropertyMap()).containsEntry("idempotenceId", "order-1");
            await().until(() -> state() == State.ABANDONED);
        }
    }

    @Test
    @DisplayName("T21: an outage begins the count anew, and the claim is given back in the end")
    void anOutageBeginsTheCountAnew() {
        AtomicInteger sent = new AtomicInteger();
        storage.after((call, which) -> {
            if (call == Call.CLAIM) {
                int number = sent.getAndIncrement();
                if (number == StorageClaims.MAX_BUGS_IN_A_ROW) {
                    throw new StorageUnavailableException("the storage does not respond", null);
                } else if (number < 2 * StorageClaims.MAX_BUGS_IN_A_ROW) {
                    throw bug();
                }
            }
        });
        try (CapturedLog log = CapturedLog.of(Idempotence.class)) {
            assertThatThrownBy(() -> claims.claimForExecution(id, Claims.request(key, LEASE)))
                    .hasMessage("a bug of the storage");
            awaitWithoutDelays(() -> state() == State.RELEASED);
            assertThat(log.errors()).isEmpty();
        }
    }

    @Test
    @DisplayName("T21: an ID that was perhaps saved is released however often the storage throws: no lease would end")
    void aSavedIdIsReleasedHoweverOftenTheStorageThrows() {
        breakTheReplies();
        try (CapturedLog log = CapturedLog.of(Idempotence.class)) {
            assertThatThrownBy(() -> claims.save(id, Claims.request(key))).hasMessage("a bug of the storage");
            awaitWithoutDelays(() -> storage.count(Call.CLAIM) > 2 * StorageClaims.MAX_BUGS_IN_A_ROW);
            storage.after((call, which) -> {});
            awaitWithoutDelays(() -> state() == State.RELEASED);
            assertThat(log.errors()).isEmpty();
        }
    }
}
