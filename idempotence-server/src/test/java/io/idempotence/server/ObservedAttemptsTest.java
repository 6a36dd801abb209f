package io.idempotence.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.IdempotenceId;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageKey;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class ObservedAttemptsTest {
    private static final IdempotenceId ID = IdempotenceId.of("order-1");

    private final List<String> ends = new ArrayList<>();
    private final List<StorageKey> keys = new ArrayList<>();

    private Idempotence observed(IdempotenceListener.AttemptListener listening) {
        return Idempotence.builder(IdempotenceStorage.inMemory())
                .listener(new IdempotenceListener() {
                    @Override
                    public void onEvent(IdempotenceEvent event, IdempotenceId id) {}

                    @Override
                    public AttemptListener onAttempt(IdempotenceId id, StorageKey key) {
                        keys.add(key);
                        return listening;
                    }
                })
                .build();
    }

    private Idempotence observed() {
        return observed((end, detail) -> ends.add(end + " " + detail));
    }

    @Test
    @DisplayName("every attempt begins with its key and ends once, with what became of it")
    void everyAttemptEndsOnce() throws Exception {
        try (Idempotence idempotence = observed()) {
            assertThatThrownBy(() -> idempotence.execute(ID, () -> {
                throw new IllegalStateException("no connection");
            }));
            idempotence.execute(ID, () -> "done");
            idempotence.execute(ID, () -> "done");
            idempotence.execute(IdempotenceId.of("order-2"), ResultCodec.text(), execution -> {
                execution.markUnknown();
                return "?";
            });
            assertThatThrownBy(() -> idempotence.execute(IdempotenceId.of("order-2"), () -> "done"))
                    .isInstanceOf(ExecutionRefusedException.class);

            assertThat(ends)
                    .containsExactly("RUN released", "RUN kept", "REPLAY ", "RUN unknown", "REFUSE outcome-unknown");
            assertThat(keys).hasSize(5).contains(idempotence.admin().executeKey(ID));
        }
    }

    @Test
    @DisplayName("the end of a running attempt comes when it is recorded, not before")
    void theEndOfARunningAttemptComesWhenItIsRecorded() {
        try (Idempotence idempotence = observed()) {
            Decision decision = idempotence.engine().claim(IdempotentCall.of(ID), IdempotencePolicy.defaults());
            assertThat(ends).isEmpty();

            ((ClaimedExecution) decision).finishWithoutResult(Verdict.KEEP);
            ((ClaimedExecution) decision).finishWithoutResult(Verdict.KEEP);

            assertThat(ends).containsExactly("RUN kept");
        }
    }

    private String work() {
        ends.add("work");
        return "done";
    }

    /** Notes when it is entered and left. */
    private final class Entered implements IdempotenceListener.AttemptListener {
        @Override
        public Runnable enter() {
            ends.add("enter");
            return () -> ends.add("leave");
        }

        @Override
        public void ended(IdempotenceListener.AttemptEnd end, String detail) {
            ends.add(end + " " + detail);
        }
    }

    @Test
    @DisplayName("work runs between enter and leave, before the end of its attempt")
    void workRunsWithinItsAttempt() throws Exception {
        try (Idempotence idempotence = observed(new Entered())) {
            idempotence.execute(ID, this::work);
            idempotence.execute(ID, this::work);
            assertThatThrownBy(() -> idempotence.execute(IdempotenceId.of("order-2"), () -> {
                throw new IllegalStateException("no connection");
            }));
            assertThat(ends)
                    .containsExactly("enter", "work", "leave", "RUN kept", "REPLAY ", "enter", "leave", "RUN released");
        }
    }

    @Test
    @DisplayName("work with a future runs between enter and leave, even if its future ends later")
    void asynchronousWorkBeginsWithinItsAttempt() {
        try (Idempotence idempotence = observed(new Entered())) {
            CompletableFuture<String> work = new CompletableFuture<>();
            idempotence.executeAsync(
                    IdempotentCall.of(ID),
                    IdempotencePolicy.defaults(),
                    Duration.ZERO,
                    ResultCodec.text(),
                    execution -> work);
            assertThat(ends).containsExactly("enter", "leave");
            work.complete("done");
            assertThat(ends).containsExactly("enter", "leave", "RUN kept");
        }
    }

    @Test
    @DisplayName("a listener that throws when it is entered or left changes nothing")
    void aListenerThatCannotBeEnteredChangesNothing() throws Exception {
        for (boolean onEnter : new boolean[] {true, false}) {
            IdempotenceListener.AttemptListener broken = new IdempotenceListener.AttemptListener() {
                @Override
                public Runnable enter() {
                    if (onEnter) {
                        throw new IllegalStateException("a listener's bug");
                    }
                    return () -> {
                        throw new IllegalStateException("a listener's bug");
                    };
                }

                @Override
                public void ended(IdempotenceListener.AttemptEnd end, String detail) {}
            };
            try (Idempotence idempotence = observed(broken);
                    CapturedLog log = CapturedLog.of(Idempotence.class)) {
                assertThat(idempotence.execute(ID, () -> "done")).isEqualTo("done");
                assertThat(log.warnings()).hasSize(1);
            }
        }
    }

    @Test
    @DisplayName("a listener that throws changes nothing")
    void aListenerThatThrowsChangesNothing() throws Exception {
        try (Idempotence idempotence = observed((end, detail) -> {
                    throw new IllegalStateException("a listener's bug");
                });
                CapturedLog log = CapturedLog.of(Idempotence.class)) {
            assertThat(idempotence.execute(ID, () -> "done")).isEqualTo("done");
            assertThat(idempotence.execute(ID, () -> "again")).isEqualTo("done");
            assertThat(log.warnings()).hasSize(2);
        }
    }
}
