package io.idempotence.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.OnAbandoned;
import io.idempotence.http.Refusal;
import io.idempotence.server.ExpectedOutcome.Shown;
import io.idempotence.server.HistoryStep.Act;
import io.idempotence.server.HistoryStep.Rule;
import io.idempotence.server.HistoryStep.Wire;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.FaultyStorage;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A random history of two processes that share a storage. Their background calls reach the storage only between two steps. */
final class RandomHistory {
    /** One of the two processes. */
    private static final class Instance {
        final FaultyStorage storage;
        final Idempotence idempotence;
        /** The IDs whose last write failed here. It is retried in the background. */
        final Set<Id> lostEnds = new HashSet<>();

        Instance(IdempotenceStorage storage) {
            this.storage = new FaultyStorage(storage);
            this.idempotence = UnusualParts.withoutBreaker(this.storage, IdempotencePolicy.defaults());
        }
    }

    /** A running handler. {@code since} is how often leases had been ended when it began. */
    private record Running(Instance process, ClaimedExecution execution, int since) {}

    /** A duplicate that waits. */
    private record Waiter(Instance process, CompletableFuture<Decision> decision) {}

    /** An ID with its running handlers and waiting duplicates, and what the test has observed of it so far. */
    private static final class Id {
        final IdempotenceId id = IdempotenceId.of("order-" + UUID.randomUUID());
        final IdempotentCall call = IdempotentCall.of(id);
        final StorageKey key = StorageKey.of("default", "", "", id);
        final List<Running> running = new ArrayList<>();
        final List<Waiter> waiting = new ArrayList<>();
        /** The decisions that the waiting duplicates may get: one for each state of the record since the first of them came. */
        final Set<String> tellable = new HashSet<>();

        final Set<Long> fences = new HashSet<>();
        /** When a handler succeeded last, as {@link Running#since}; -1 if none did. */
        int succeeded = -1;

        byte @Nullable [] completed;
    }

    private static final Duration LONG = Duration.ofMinutes(10);
    private static final Duration RETENTION = Duration.ofHours(24);
    private static final Duration MOMENT = Duration.ofMillis(1);

    private final IdempotenceStorage storage;
    private final Consumer<Duration> letPass;
    private final IdempotenceStorage shared;
    private final Object turn = new Object();
    private final List<Instance> processes = new ArrayList<>();
    private final List<Instance> dead = new ArrayList<>();
    private final List<Id> ids = List.of(new Id(), new Id(), new Id());
    private final Map<StorageKey, Claim> claims = new HashMap<>();
    private final List<String> asked = new ArrayList<>();
    private int leasesEnded;

    RandomHistory(IdempotenceStorage storage, Consumer<Duration> letPass) {
        this.storage = storage;
        this.letPass = letPass;
        this.shared = (IdempotenceStorage) Proxy.newProxyInstance(
                IdempotenceStorage.class.getClassLoader(),
                new Class<?>[] {IdempotenceStorage.class},
                (proxy, method, arguments) -> method.getName().equals("close") ? null : callInTurn(method, arguments));
        processes.add(new Instance(shared));
        processes.add(new Instance(shared));
    }

    /** Makes one call at a time, and records who may run and what waiting duplicates may get. */
    private Object callInTurn(Method method, Object[] arguments) throws Throwable {
        synchronized (turn) {
            Object reply;
            try {
                reply = method.invoke(storage, arguments);
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
            if (reply instanceof ClaimResult.Claimed claimed) {
                claims.put(claimed.claim().key(), claimed.claim());
            }
            ids.forEach(this::noteTellable);
            return reply;
        }
    }

    void play(List<HistoryStep> steps) {
        try {
            steps.forEach(this::act);
            awaitAllTold();
            close();
            assertAllReplied();
        } finally {
            close();
        }
    }

    private void close() {
        processes.forEach(process -> process.storage.before((call, key) -> {}).after((call, key) -> {}));
        processes.forEach(process -> process.idempotence.close());
        dead.forEach(process -> process.idempotence.close());
    }

    private void act(HistoryStep step) {
        if (step.act() == Act.PAUSE) {
            awaitAllTold();
            return;
        }
        synchronized (turn) {
            setWires(step.wire());
            ids.forEach(this::endLeaseThatIsEnding);
            Id id = ids.get(step.id());
            switch (step.act()) {
                case CLAIM -> claim(id, step);
                case SUCCEED -> finish(id, step, Verdict.KEEP, true);
                case SUCCEED_WITHOUT_RESULT -> finish(id, step, Verdict.KEEP, false);
                case FAIL -> finish(id, step, Verdict.RELEASE, false);
                case END_UNCERTAIN -> finish(id, step, Verdict.UNKNOWN, false);
                case CRASH -> crash(step.process());
                case LEASES_END -> endLeases();
                case APPLIED -> resolve(id, Resolution.APPLIED);
                case NOT_APPLIED -> resolve(id, Resolution.NOT_APPLIED);
                case PAUSE -> throw new IllegalStateException();
            }
            assertAllWell();
        }
    }

    private void setWires(Wire wire) {
        Thread here = Thread.currentThread();
        int[] replies = new int[1];
        for (Instance process : processes) {
            process.storage.before((call, key) -> {
                if (Thread.currentThread() == here && wire == Wire.LOSES_CALLS) {
                    throw unavailable();
                }
            });
            process.storage.after((call, key) -> {
                if (Thread.currentThread() == here && isLost(wire, replies[0]++)) {
                    throw unavailable();
                }
            });
        }
    }

    private static boolean isLost(Wire wire, int reply) {
        return wire == Wire.LOSES_REPLIES
                || (wire == Wire.LOSES_FIRST_REPLY && reply == 0)
                || (wire == Wire.LOSES_SECOND_REPLY && reply == 1);
    }

    private static StorageUnavailableException unavailable() {
        return new StorageUnavailableException("the storage does not respond", null);
    }

    private IdempotencePolicy policy(Rule rule) {
        IdempotencePolicy.Builder builder =
                IdempotencePolicy.builder().lease(LONG).retention(RETENTION);
        if (rule.asks()) {
            builder.recover((call, fence) -> {
                asked.add(call.id().value() + " " + fence);
                if (rule == Rule.THROWS) {
                    throw new IOException("the ledger is away");
                }
                return IdempotencePolicy.Applied.valueOf(rule.name());
            });
        } else {
            builder.onAbandoned(OnAbandoned.valueOf(rule.name()));
        }
        return builder.build();
    }

    private void claim(Id id, HistoryStep step) {
        Shown before = shown(id);
        ExpectedOutcome expected = ExpectedOutcome.ofClaim(before, ended(id), step.rule(), step.wire());
        boolean waits = step.waits() && expected.said().equals(Refusal.IN_PROGRESS.name());
        Instance process = processes.get(step.process());
        if (waits && id.waiting.isEmpty() && processes.stream().noneMatch(any -> any.lostEnds.contains(id))) {
            id.tellable.clear();
        }
        asked.clear();
        CompletableFuture<Decision> attempt = Duplicates.claim(
                process.idempotence, id.call, policy(step.rule()), step.waits() ? LONG : Duration.ZERO);

        if (waits) {
            id.waiting.add(new Waiter(process, attempt));
        } else {
            assertThat(attempt).as("%s at %s", step, before).isDone();
            assertThat(said(attempt.join())).as("%s at %s", step, before).isEqualTo(expected.said());
            if (attempt.join() instanceof ClaimedExecution execution) {
                begin(id, new Running(process, execution, leasesEnded));
            }
        }
        assertThat(shown(id)).as("after %s at %s", step, before).isEqualTo(expected.after());
        boolean asks = before.state() == State.ABANDONED
                && step.rule().asks()
                && !step.wire().losesAll();
        assertThat(asked).isEqualTo(asks ? List.of(id.id.value() + " " + before.fence()) : List.of());
    }

    private void begin(Id id, Running running) {
        assertThat(id.fences.add(running.execution.fence()))
                .as("fence %d is new", running.execution.fence())
                .isTrue();
        assertThat(id.completed).as("completed").isNull();
        assertThat(id.running).allMatch(other -> other.since < leasesEnded);
        assertThat(id.succeeded).as("when it succeeded").isLessThan(leasesEnded);
        id.running.add(running);
    }

    private void finish(Id id, HistoryStep step, Verdict verdict, boolean withResult) {
        if (id.running.isEmpty()) {
            return;
        }
        Running running = id.running.remove(step.which() % id.running.size());
        ClaimedExecution execution = running.execution;
        Shown before = shown(id);
        boolean owns = before.fence() == execution.fence()
                && (before.state() == State.IN_PROGRESS || before.state() == State.ABANDONED);
        boolean arrives = step.wire() != Wire.LOSES_CALLS;
        boolean hasReply = !step.wire().losesFirst();
        String ended = ended(id);
        boolean overtakenByReply = hasReply
                && before.state() == State.COMPLETED
                && (verdict == Verdict.RELEASE || ended.startsWith("replay"));
        byte[] own = withResult ? StoredResult.value(new byte[] {(byte) execution.fence()}) : ClaimResult.noResult();

        String given = execution.finish(verdict, own).map(RandomHistory::said).orElse("its own");

        // The effect of the execution before the take-over is still unknown.
        boolean abandons = verdict == Verdict.RELEASE
                && execution.takenOver()
                && execution.policy().onAbandoned() == OnAbandoned.RE_EXECUTE;
        if (abandons) {
            letPass.accept(MOMENT.multipliedBy(2));
        }
        State after = abandons ? State.ABANDONED : after(verdict);
        assertThat(given).as("%s at %s", step, before).isEqualTo(overtakenByReply ? ended : "its own");
        assertThat(shown(id))
                .as("after %s at %s", step, before)
                .isEqualTo(owns && arrives ? new Shown(after, before.fence()) : before);
        if (owns && arrives && verdict == Verdict.KEEP) {
            assertThat(ended(id)).isEqualTo(said(FixedDecisions.ended(own)));
        }
        if (!hasReply) {
            running.process.lostEnds.add(id);
        } else if (owns || before.state() == State.COMPLETED) {
            assertThat(id.waiting)
                    .as("waiting in its process")
                    .allSatisfy(waiter -> assertThat(waiter.process == running.process && !waiter.decision.isDone())
                            .isFalse());
        }
        // Its claim keeps others out until its lease ends, even if its end is not recorded yet. A late one has none.
        if (verdict == Verdict.KEEP && running.since == leasesEnded) {
            id.succeeded = leasesEnded;
        }
    }

    private static State after(Verdict verdict) {
        return switch (verdict) {
            case KEEP -> State.COMPLETED;
            case RELEASE -> State.RELEASED;
            case UNKNOWN -> State.UNKNOWN;
        };
    }

    /** Crashes a process: none of its calls reaches the storage any more, and its waiting duplicates are forgotten. */
    private void crash(int which) {
        Instance process = processes.set(which, new Instance(shared));
        process.storage.before((call, key) -> {
            throw unavailable();
        });
        dead.add(process);
        ids.forEach(id -> {
            id.running.removeIf(running -> running.process == process);
            id.waiting.removeIf(waiter -> waiter.process == process);
        });
    }

    /** A take-over that was given back in the background just before a step has a lease that would end in the middle of it. */
    private void endLeaseThatIsEnding(Id id) {
        storage.find(id.key)
                .filter(found ->
                        found.state() == State.IN_PROGRESS && found.leaseLeft().compareTo(LONG.dividedBy(2)) < 0)
                .ifPresent(found -> letPass.accept(found.leaseLeft().plus(MOMENT)));
    }

    private void endLeases() {
        claims.values().forEach(claim -> storage.renew(claim, MOMENT));
        letPass.accept(MOMENT.multipliedBy(2));
        leasesEnded++;
    }

    private void resolve(Id id, Resolution resolution) {
        storage.resolve(id.key, Math.max(1, shown(id).fence()), resolution, RETENTION);
    }

    private Shown shown(Id id) {
        return storage.find(id.key)
                .map(found -> new Shown(found.state(), found.fence()))
                .orElse(new Shown(State.RELEASED, 0));
    }

    private byte[] result(Id id) {
        ClaimRequest look =
                new ClaimRequest(id.key, Fingerprint.NONE, new Owner(0, 0), LONG, Duration.ofHours(1), false);
        return ((ClaimResult.Completed) storage.claim(look)).result();
    }

    /** What every later attempt gets; empty unless it is completed. */
    private String ended(Id id) {
        return shown(id).state() == State.COMPLETED ? said(FixedDecisions.ended(result(id))) : "";
    }

    private static String said(Decision decision) {
        if (decision instanceof ClaimedExecution execution) {
            return ExpectedOutcome.run(execution.fence(), execution.takenOver());
        }
        if (decision instanceof Decision.Replay replay) {
            return "replay " + Arrays.toString(replay.result());
        }
        return ((Decision.Refuse) decision).refusal().name();
    }

    private void noteTellable(Id id) {
        switch (shown(id).state()) {
            case IN_PROGRESS -> {}
            case COMPLETED -> id.tellable.add(ended(id));
            case UNKNOWN -> id.tellable.add(Refusal.OUTCOME_UNKNOWN.name());
            // They may be retried, and the policy then decides.
            case RELEASED, ABANDONED -> id.tellable.add(Refusal.IN_PROGRESS.name());
        }
    }

    private void assertAllWell() {
        ids.forEach(this::noteTellable);
        ids.forEach(this::assertToldWhatIsTellable);
        ids.forEach(this::assertCompletedStays);
    }

    private void assertToldWhatIsTellable(Id id) {
        List<Waiter> told =
                id.waiting.stream().filter(waiter -> waiter.decision.isDone()).toList();
        assertThat(told)
                .allSatisfy(waiter ->
                        assertThat(said(waiter.decision.join())).as("told").isIn(id.tellable));
        id.waiting.removeAll(told);
    }

    /** A record that is completed never changes. */
    private void assertCompletedStays(Id id) {
        if (id.completed != null || shown(id).state() == State.COMPLETED) {
            byte[] found = result(id);
            assertThat(found).isEqualTo(id.completed == null ? found : id.completed);
            id.completed = found;
        }
    }

    /** Waits until no duplicate waits for an execution that has ended, in whichever process it ran. */
    private void awaitAllTold() {
        for (Id id : ids) {
            for (Waiter waiter : List.copyOf(id.waiting)) {
                if (hasEnded(id, waiter.process)) {
                    awaitTold(waiter);
                }
            }
        }
        synchronized (turn) {
            assertAllWell();
        }
    }

    /** Lets time pass meanwhile: a take-over that is given back in the background ends its lease, which takes a moment. */
    private void awaitTold(Waiter waiter) {
        await("told").until(() -> {
            letPass.accept(MOMENT);
            return waiter.decision.isDone();
        });
    }

    /**
     * Whether the execution of an ID has ended and its waiting duplicates in a process must have their decision. An execution that still
     * runs in that process, or whose end is not recorded yet, notifies them later.
     */
    private boolean hasEnded(Id id, Instance seenFrom) {
        return shown(id).state() != State.IN_PROGRESS
                && id.running.stream().noneMatch(running -> running.process == seenFrom)
                && !seenFrom.lostEnds.contains(id);
    }

    /** Asserts that closing the processes has ended every wait. */
    private void assertAllReplied() {
        for (Id id : ids) {
            assertThat(id.waiting).allMatch(waiter -> waiter.decision.isDone());
            id.tellable.add(Refusal.STORAGE_UNAVAILABLE.name());
        }
        assertAllWell();
    }
}
