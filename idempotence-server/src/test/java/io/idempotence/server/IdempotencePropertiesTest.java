package io.idempotence.server;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.ClaimRequest;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.MovingClock;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.RecordState;
import io.idempotence.server.storage.Resolution;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tuple;
import org.jspecify.annotations.Nullable;
import org.slf4j.LoggerFactory;

/**
 * Random histories of two processes that serve attempts at several IDs, over a storage that loses calls and answers. Whatever happens, each run
 * of an ID has a fence of its own, two run at once only if a lease ended between them, and a success runs nothing again and is never changed.
 */
class IdempotencePropertiesTest {
    /** What happens. */
    enum Act {
        CLAIM,
        SUCCEED,
        FAIL,
        END_UNCERTAIN,
        CRASH,
        LEASES_END,
        APPLIED,
        NOT_APPLIED
    }

    /** What becomes of the calls of one step; the background always gets through. */
    enum Wire {
        WORKS,
        LOSES_CALLS,
        LOSES_ANSWERS,
        LOSES_FIRST_ANSWER
    }

    /** @param which of the executions that run acts */
    record Step(Act act, int process, int id, int which, boolean takeOver, Wire wire) {}

    /** A handler that runs. {@code since} counts the ends of leases. */
    private record Running(Execution execution, int since) {}

    /** What is known of an ID from outside. */
    private static final class Id {
        final IdempotentCall call;
        final StorageKey key;
        final List<Running> running = new ArrayList<>();
        final Set<Long> fences = new HashSet<>();
        /** When a handler succeeded last, as {@link Running#since}; -1 if none did. */
        int succeeded = -1;

        byte @Nullable [] completed;

        Id(int number) {
            IdempotenceId id = IdempotenceId.of("order-" + number);
            call = IdempotentCall.of(id);
            key = StorageKey.of("default", "", "", id);
        }
    }

    private static final Duration LONGER_THAN_A_LEASE = Duration.ofSeconds(31);

    private final MovingClock clock = new MovingClock();
    private final IdempotenceStorage memory = IdempotenceStorage.inMemory(1_000, clock);
    private final FaultyStorage storage = new FaultyStorage(memory);
    private final List<Idempotence> processes = List.of(Idempotence.over(storage), Idempotence.over(storage));
    private final List<Id> ids = List.of(new Id(0), new Id(1), new Id(2));
    private int leasesEnded;

    @Provide
    Arbitrary<List<Step>> histories() {
        Arbitrary<Act> acts = Arbitraries.frequency(
                Tuple.of(9, Act.CLAIM),
                Tuple.of(3, Act.SUCCEED),
                Tuple.of(4, Act.FAIL),
                Tuple.of(1, Act.END_UNCERTAIN),
                Tuple.of(1, Act.CRASH),
                Tuple.of(3, Act.LEASES_END),
                Tuple.of(1, Act.APPLIED),
                Tuple.of(1, Act.NOT_APPLIED));
        Arbitrary<Wire> wires = Arbitraries.frequency(
                Tuple.of(6, Wire.WORKS),
                Tuple.of(1, Wire.LOSES_CALLS),
                Tuple.of(1, Wire.LOSES_ANSWERS),
                Tuple.of(2, Wire.LOSES_FIRST_ANSWER));
        return Combinators.combine(
                        acts,
                        Arbitraries.integers().between(0, 1),
                        Arbitraries.frequency(Tuple.of(5, 0), Tuple.of(2, 1), Tuple.of(1, 2)),
                        Arbitraries.integers().between(0, 3),
                        Arbitraries.of(true, false),
                        wires)
                .as(Step::new)
                .list()
                .ofMinSize(1)
                .ofMaxSize(40);
    }

    @Property(tries = 200)
    void noHistoryRunsTwiceWhatMayRunOnce(@ForAll("histories") List<Step> history) {
        Logger log = (Logger) LoggerFactory.getLogger(Idempotence.class);
        Level level = log.getLevel();
        log.setLevel(Level.OFF); // thousands of lost calls
        IdempotencePropertiesTest fresh = new IdempotencePropertiesTest();
        try {
            history.forEach(fresh::act);
        } finally {
            fresh.storage.before((call, key) -> {}).after((call, key) -> {});
            fresh.processes.forEach(Idempotence::close);
            log.setLevel(level);
        }
    }

    private void act(Step step) {
        Thread here = Thread.currentThread();
        int[] answers = new int[1];
        storage.before((call, key) -> {
            if (Thread.currentThread() == here && step.wire == Wire.LOSES_CALLS) {
                throw unavailable();
            }
        });
        storage.after((call, key) -> {
            boolean lost =
                    step.wire == Wire.LOSES_ANSWERS || (step.wire == Wire.LOSES_FIRST_ANSWER && answers[0]++ == 0);
            if (Thread.currentThread() == here && lost) {
                throw unavailable();
            }
        });
        Id id = ids.get(step.id);
        switch (step.act) {
            case CLAIM -> claim(id, step);
            case SUCCEED -> finish(id, step, Verdict.KEEP);
            case FAIL -> finish(id, step, Verdict.RELEASE);
            case END_UNCERTAIN -> finish(id, step, Verdict.UNKNOWN);
            case CRASH -> {
                if (!id.running.isEmpty()) {
                    id.running.remove(step.which % id.running.size());
                }
            }
            case LEASES_END -> {
                clock.advance(LONGER_THAN_A_LEASE);
                leasesEnded++;
            }
            case APPLIED -> resolve(id, Resolution.APPLIED);
            case NOT_APPLIED -> resolve(id, Resolution.NOT_APPLIED);
        }
        ids.forEach(this::assertCompletedStays);
    }

    private static StorageUnavailableException unavailable() {
        return new StorageUnavailableException("the cable is out", null);
    }

    private void claim(Id id, Step step) {
        IdempotencePolicy policy = IdempotencePolicy.builder()
                .onAbandoned(
                        step.takeOver ? IdempotencePolicy.OnAbandoned.RE_EXECUTE : IdempotencePolicy.OnAbandoned.REFUSE)
                .build();
        RecordState before = state(id);
        Decision decision = processes.get(step.process).claim(id.call, policy);
        if (decision instanceof Decision.Run run) {
            assertThat(id.fences.add(run.execution().fence()))
                    .as("fence %d is new", run.execution().fence())
                    .isTrue();
            assertThat(before).isNotIn(RecordState.COMPLETED, RecordState.UNKNOWN);
            assertThat(!run.execution().takenOver() || (step.takeOver && before == RecordState.ABANDONED))
                    .isTrue();
            assertThat(id.running).allMatch(other -> other.since < leasesEnded);
            assertThat(id.succeeded).as("when it succeeded").isLessThan(leasesEnded);
            id.running.add(new Running(run.execution(), leasesEnded));
        } else if (decision instanceof Decision.Replay replay) {
            assertReplayed(id, replay);
        }
    }

    private void assertReplayed(Id id, Decision.Replay replay) {
        assertCompletedStays(id);
        assertThat(replay.result()).isEqualTo(id.completed);
    }

    /** A record that is completed never changes. */
    private void assertCompletedStays(Id id) {
        if (id.completed != null || state(id) == RecordState.COMPLETED) {
            ClaimRequest look = new ClaimRequest(
                    id.key, Fingerprint.NONE, new Owner(0, 0), LONGER_THAN_A_LEASE, Duration.ofHours(1), false);
            byte[] found = ((ClaimResult.Completed) memory.claim(look)).result();
            assertThat(found).isEqualTo(id.completed == null ? found : id.completed);
            id.completed = found;
        }
    }

    private RecordState state(Id id) {
        return memory.find(id.key).map(IdempotenceRecord::state).orElse(RecordState.RELEASED);
    }

    private void finish(Id id, Step step, Verdict verdict) {
        if (id.running.isEmpty()) {
            return;
        }
        Running running = id.running.remove(step.which % id.running.size());
        byte[] own = StoredResult.value(new byte[] {(byte) running.execution.fence()});
        // Until then its claim protects it, even if its end is not recorded yet; a late one has no claim.
        boolean holds = running.since == leasesEnded;
        running.execution.finish(verdict, own).ifPresent(instead -> {
            assertThat(instead).isNotInstanceOf(Decision.Run.class);
            if (instead instanceof Decision.Replay replay) {
                assertThat(replay.result()).isNotEqualTo(own);
                assertReplayed(id, replay);
            }
        });
        if (verdict == Verdict.KEEP && holds) {
            id.succeeded = leasesEnded;
        }
    }

    private void resolve(Id id, Resolution resolution) {
        memory.find(id.key)
                .ifPresent(record -> memory.resolve(id.key, record.fence(), resolution, Duration.ofHours(1)));
    }
}
