package io.idempotence.server;

import static io.idempotence.server.Refusals.refusalOf;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.OnAbandoned;
import io.idempotence.http.Refusal;
import io.idempotence.server.IdempotencePolicy.Applied;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.redis.RedisOfAClass;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceRecord.State;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** A consumer that is killed while it processes messages, which are then delivered again to another process. */
class ConsumerCrashTest {
    @RegisterExtension
    static final RedisOfAClass REDIS = new RedisOfAClass();

    private static final String REFUSED = "refused";
    private static final String EXECUTED_AGAIN = "executed-again";
    private static final String APPLIED = "applied";
    private static final String NOT_APPLIED = "not-applied";
    private static final String UNCERTAIN = "uncertain";

    private final List<IdempotenceEvent> events = new CopyOnWriteArrayList<>();
    private final List<String> runs = new ArrayList<>();
    private final List<String> asked = new ArrayList<>();
    private RedisIdempotenceStorage storage;
    private IdempotenceAdmin admin;
    private Idempotence idempotence;

    @BeforeAll
    static void crash() throws Exception {
        KilledProcess.at(
                CrashingConsumer.MIDDLE,
                CrashingConsumer.class,
                REDIS.server().address(),
                REFUSED,
                EXECUTED_AGAIN,
                APPLIED,
                NOT_APPLIED,
                UNCERTAIN);
    }

    @BeforeEach
    void open() {
        storage = REDIS.connect();
        admin = IdempotenceAdmin.of(storage, "default");
    }

    @AfterEach
    void close() {
        idempotence.close();
    }

    private void consumeBy(IdempotencePolicy.Builder policy) {
        idempotence = Idempotence.builder(storage)
                .policy(policy.build())
                .listener((event, id) -> events.add(event))
                .build();
    }

    private void consumeAsking(Applied response) {
        consumeBy(IdempotencePolicy.builder().recover((call, fence) -> {
            asked.add(call.id().value() + " " + fence);
            return response;
        }));
    }

    private IdempotenceRecord record(String message) {
        return admin.find(admin.executeKey(IdempotenceId.of(message))).orElseThrow();
    }

    private String delivered(String message) throws Exception {
        await().until(() -> record(message).state() != State.IN_PROGRESS);
        return idempotence.execute(IdempotenceId.of(message), ResultCodec.text(), execution -> {
            runs.add((execution.takenOver() ? "taken over, fence " : "fence ") + execution.fence());
            return "consumed";
        });
    }

    @Test
    void aMessageWhoseOutcomeIsUnknownIsRefusedHoweverOftenItComes() {
        consumeBy(IdempotencePolicy.builder());

        for (int i = 0; i < 2; i++) {
            assertThat(refusalOf(() -> delivered(REFUSED))).isEqualTo(Refusal.OUTCOME_UNKNOWN);
        }

        assertThat(runs).isEmpty();
        assertThat(record(REFUSED).state()).isEqualTo(State.ABANDONED);
        assertThat(record(REFUSED).fence()).isEqualTo(1);
        assertThat(events).containsExactly(IdempotenceEvent.UNKNOWN, IdempotenceEvent.UNKNOWN);
    }

    @Test
    void aMessageThatMayBeConsumedAgainIsTakenOverOnce() throws Exception {
        consumeBy(IdempotencePolicy.builder().onAbandoned(OnAbandoned.RE_EXECUTE));

        for (int i = 0; i < 2; i++) {
            assertThat(delivered(EXECUTED_AGAIN)).isEqualTo("consumed");
        }

        assertThat(runs).containsExactly("taken over, fence 2");
        assertThat(events).containsExactly(IdempotenceEvent.TAKE_OVER, IdempotenceEvent.REPLAYED);
    }

    @Test
    void aMessageThatWasAppliedIsCompletedWithoutItsResult() {
        consumeAsking(Applied.YES);

        for (int i = 0; i < 2; i++) {
            assertThat(refusalOf(() -> delivered(APPLIED))).isEqualTo(Refusal.RESULT_UNAVAILABLE);
        }

        assertThat(asked).containsExactly(APPLIED + " 1");
        assertThat(runs).isEmpty();
        assertThat(record(APPLIED).state()).isEqualTo(State.COMPLETED);
    }

    @Test
    void aMessageThatWasNotAppliedIsConsumed() throws Exception {
        consumeAsking(Applied.NO);

        for (int i = 0; i < 2; i++) {
            assertThat(delivered(NOT_APPLIED)).isEqualTo("consumed");
        }

        assertThat(asked).containsExactly(NOT_APPLIED + " 1");
        assertThat(runs).containsExactly("taken over, fence 2");
    }

    @Test
    void aMessageOfUnknownOutcomeIsRefused() {
        consumeAsking(Applied.UNKNOWN);

        assertThat(refusalOf(() -> delivered(UNCERTAIN))).isEqualTo(Refusal.OUTCOME_UNKNOWN);

        assertThat(asked).containsExactly(UNCERTAIN + " 1");
        assertThat(runs).isEmpty();
        assertThat(record(UNCERTAIN).state()).isEqualTo(State.ABANDONED);
    }
}
