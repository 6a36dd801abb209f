package io.idempotence.server;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.IdempotenceId;
import io.idempotence.OnAbandoned;
import io.idempotence.http.Refusal;
import io.idempotence.server.IdempotenceListener.ReleaseReason;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.FaultyStorage.Call;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.MovingClock;
import io.idempotence.server.storage.StorageKey;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * A fixture for attempts at one ID: a storage whose calls may fail, a clock that only the test moves, and the calls that the listener gets.
 * Each test has its own.
 */
final class AttemptsAtOneId implements AfterEachCallback {
    static final byte[] OWN = StoredResult.value(new byte[] {1});
    static final byte[] PAGE = StoredResult.value(new byte[] {3});
    static final byte[] OTHER = StoredResult.value(new byte[] {2});
    static final Duration LEASE = Duration.ofMinutes(6);
    static final IdempotencePolicy POLICY = IdempotencePolicy.builder()
            .lease(LEASE)
            .onAbandoned(OnAbandoned.RE_EXECUTE)
            .build();
    static final IdempotenceId ID = IdempotenceId.of("order-1");
    static final StorageKey KEY = StorageKey.of("default", "", "", ID);

    final MovingClock clock = new MovingClock();
    final IdempotenceStorage memory = IdempotenceStorage.inMemory(100, clock);
    final FaultyStorage storage = new FaultyStorage(memory);
    final List<String> told = new CopyOnWriteArrayList<>();
    final List<String> reasons = new CopyOnWriteArrayList<>();
    private final IdempotenceListener listener = new IdempotenceListener() {
        @Override
        public void onEvent(IdempotenceEvent event, IdempotenceId which) {
            told.add(event.toString());
        }

        @Override
        public void onReleased(IdempotenceId which, ReleaseReason reason) {
            reasons.add(reason.toString());
        }

        @Override
        public void onOverhead(AttemptEnd end, long nanos) {
            told.add("overhead of " + end);
        }
    };
    final Idempotence idempotence =
            Idempotence.builder(storage).listener(listener).build();

    @Override
    public void afterEach(ExtensionContext context) {
        storage.before((call, which) -> {});
        idempotence.close();
    }

    Decision claim() {
        return claim(POLICY);
    }

    private Decision claim(IdempotencePolicy policy) {
        return idempotence.engine().claim(IdempotentCall.of(ID), policy);
    }

    ClaimedExecution run() {
        return run(POLICY);
    }

    ClaimedExecution run(IdempotencePolicy policy) {
        return (ClaimedExecution) claim(policy);
    }

    State state() {
        return memory.find(KEY).orElseThrow().state();
    }

    void fail(Call failing, RuntimeException failure) {
        storage.before((call, which) -> {
            if (call == failing) {
                throw failure;
            }
        });
    }

    static Refusal refusal(Optional<? extends Decision> decision) {
        return ((Decision.Refuse) decision.orElseThrow()).refusal();
    }

    void assertReplays(byte[] result) {
        assertThat(claim())
                .isInstanceOfSatisfying(
                        Decision.Replay.class,
                        replay -> assertThat(replay.result()).isEqualTo(result));
    }
}
