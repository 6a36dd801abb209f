package io.idempotence.server.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.IdempotenceStorage.CompletionRequest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.function.Supplier;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tuple;
import org.jspecify.annotations.Nullable;

/**
 * Random histories of several IDs at once: owners claim, renew, complete, release, mark and crash in any order, calls and replies get lost
 * and are sent again, leases and retention end, an operator decides. After each step, the reply and the record must be those of {@link
 * StorageModel}. jqwik shrinks a history that fails to a short one. Extend it, as {@link IdempotenceStorageContract}.
 */
public abstract class StorageProperties {
    private static final Duration LONG = Duration.ofMinutes(10);
    private static final Duration RETENTION = Duration.ofHours(1);
    private static final Duration MOMENT = Duration.ofMillis(1);

    /** An open storage, not closed here. */
    protected abstract IdempotenceStorage storage();

    /** Returns when the storage's own clock has gone on by at least {@code duration}. */
    protected abstract void letPass(Duration duration);

    /** An execution that takes effect, with its mark, in one transaction on the storage's database. */
    @FunctionalInterface
    public interface BusinessTransaction {
        /** Whether it committed; false if it was overtaken and rolled back. */
        boolean commit(Claim claim);
    }

    /** How executions take effect if the storage works in transaction, else null. */
    protected @Nullable BusinessTransaction businessTransaction() {
        return null;
    }

    /** The kind of a step. */
    enum Act {
        CLAIM,
        CLAIM_AGAIN,
        COMMIT,
        COMPLETE,
        /** An attempt of each ID completes, all of them in one call. */
        COMPLETE_ALL,
        COMPLETE_PROVISIONALLY,
        RELEASE,
        MARK_UNKNOWN,
        RENEW,
        LEASE_ENDS,
        CRASH,
        APPLIED,
        NOT_APPLIED,
        DELETE,
        /** An operator looks at the record. */
        LOOK,
        /** He deletes what he saw last. */
        DELETE_UNCHANGED
    }

    /** The failure of a call, if any. */
    enum Wire {
        WORKS,
        /** The storage refuses, and nothing was done. */
        LOSES_CALL,
        /** The storage fails after it was done, or its reply is lost. The attempt cannot tell whether its call was executed. */
        LOSES_REPLY
    }

    /**
     * One step.
     *
     * @param id which of the IDs
     * @param attempt which of its attempts so far acts; a claim is a new one
     * @param seldom the rare variant: the claim is of another request; the record is kept for a moment only; the operator has seen an older
     *     record
     * @param takeOver whether the policy allows a take-over; whether the operator looks again before he deletes
     */
    record Step(Act act, int id, int attempt, boolean seldom, boolean takeOver, Wire wire) {}

    /** An attempt, with the fence of its claim. */
    private static final class Attempt {
        final long owner;
        final int fingerprint;
        final boolean takeOver;
        long fence;
        boolean runs;

        Attempt(long owner, int fingerprint, boolean takeOver) {
            this.owner = owner;
            this.fingerprint = fingerprint;
            this.takeOver = takeOver;
        }
    }

    /** An ID with its model, its attempts so far, and the counts that its invariants limit. */
    private static final class Id {
        final StorageKey key = StorageKey.of(
                "model", "", "", new IdempotenceId(UUID.randomUUID().toString()));
        final List<Attempt> attempts = new ArrayList<>();
        final StorageModel model;
        int runs;
        int allowed = 1;
        int effects;
        int lives = 1;
        long fence;
        byte @Nullable [] completed;
        /** What an operator saw last. */
        @Nullable
        IdempotenceRecord seen;

        String modelSeen = "";

        Id(StorageModel model) {
            this.model = model;
        }

        /** Forgets the record: the ID may run again. */
        void forget() {
            allowed++;
            fence = 0;
            completed = null;
        }

        boolean deleted(boolean lived) {
            if (lived) {
                forget();
                lives++;
            }
            return lived;
        }

        void assertInvariants() {
            assertThat(runs).as("executions").isLessThanOrEqualTo(allowed);
            assertThat(effects).as("effects").isLessThanOrEqualTo(lives);
            assertThat(model.fence).as("fence").isGreaterThanOrEqualTo(fence);
            fence = model.fence;
            if (completed != null) {
                assertThat(model.result).as("a completed record never changes").isEqualTo(completed);
            }
            completed = model.state == StorageModel.State.C ? model.result : null;
        }
    }

    @Provide
    Arbitrary<List<Step>> histories() {
        Arbitrary<Act> acts = Arbitraries.frequency(
                Tuple.of(8, Act.CLAIM),
                Tuple.of(3, Act.CLAIM_AGAIN),
                Tuple.of(businessTransaction() == null ? 0 : 4, Act.COMMIT),
                Tuple.of(4, Act.COMPLETE),
                Tuple.of(2, Act.COMPLETE_ALL),
                Tuple.of(3, Act.COMPLETE_PROVISIONALLY),
                Tuple.of(5, Act.RELEASE),
                Tuple.of(2, Act.MARK_UNKNOWN),
                Tuple.of(2, Act.RENEW),
                Tuple.of(2, Act.LEASE_ENDS),
                Tuple.of(2, Act.CRASH),
                Tuple.of(1, Act.APPLIED),
                Tuple.of(1, Act.NOT_APPLIED),
                Tuple.of(1, Act.DELETE),
                Tuple.of(3, Act.LOOK),
                Tuple.of(3, Act.DELETE_UNCHANGED));
        // One ID has most of the history: short ones are never interesting.
        Arbitrary<Integer> ids = Arbitraries.frequency(Tuple.of(6, 0), Tuple.of(2, 1), Tuple.of(1, 2));
        Arbitrary<Boolean> seldom = Arbitraries.frequency(Tuple.of(9, false), Tuple.of(1, true));
        Arbitrary<Wire> wires = Arbitraries.frequency(
                Tuple.of(6, Wire.WORKS), Tuple.of(1, Wire.LOSES_CALL), Tuple.of(2, Wire.LOSES_REPLY));
        return Combinators.combine(
                        acts, ids, Arbitraries.integers().between(0, 5), seldom, Arbitraries.of(true, false), wires)
                .as(Step::new)
                .list()
                .ofMinSize(1)
                .ofMaxSize(50);
    }

    @Property(tries = 250)
    void everyHistoryIsOneOfTheModel(@ForAll("histories") List<Step> history) {
        Supplier<Id> any = () -> new Id(businessTransaction() == null ? new StorageModel() : new InTransactionModel());
        List<Id> ids = List.of(any.get(), any.get(), any.get());
        FaultyStorage wire = new FaultyStorage(storage());
        for (int i = 0; i < history.size(); i++) {
            Step step = history.get(i);
            Id id = ids.get(step.id);
            if (id.attempts.isEmpty() && step.act != Act.CLAIM && step.act != Act.DELETE) {
                continue;
            }
            wire.before(step.wire == Wire.LOSES_CALL ? (call, key) -> lost() : (call, key) -> {});
            wire.after(step.wire == Wire.LOSES_REPLY ? (call, key) -> lost() : (call, key) -> {});
            if (step.act == Act.COMPLETE_ALL) {
                completeAll(wire, ids, step, i);
            } else {
                act(wire, id, step, i);
            }
            assertThat(shown(id)).as("after step %d, %s", i, step).isEqualTo(id.model.shown());
            ids.forEach(Id::assertInvariants);
        }
        // What happened to one of them has changed none of the others.
        assertThat(ids).allSatisfy(id -> assertThat(shown(id)).isEqualTo(id.model.shown()));
    }

    private static void lost() {
        throw new StorageUnavailableException("the storage does not respond", null);
    }

    private String shown(Id id) {
        return storage()
                .find(id.key)
                .map(found -> found.state() + " " + found.fence())
                .orElse("none");
    }

    private void act(IdempotenceStorage storage, Id id, Step step, int number) {
        Attempt attempt = id.attempts.isEmpty() ? null : id.attempts.get(step.attempt % id.attempts.size());
        switch (step.act) {
            case CLAIM, CLAIM_AGAIN -> {
                boolean again = step.act == Act.CLAIM_AGAIN && attempt != null;
                Attempt by = again ? attempt : new Attempt(number + 1L, step.seldom ? 2 : 1, step.takeOver);
                if (!again) {
                    id.attempts.add(by);
                }
                claim(storage, id, by, step);
            }
            case COMMIT -> commit(id, attempt);
            case COMPLETE -> finish(storage, id, attempt, StorageModel.State.C, step, new byte[] {(byte) number});
            case COMPLETE_PROVISIONALLY ->
                finish(storage, id, attempt, StorageModel.State.D, step, new byte[] {(byte) number});
            case RELEASE -> finish(storage, id, attempt, StorageModel.State.R, step, null);
            case MARK_UNKNOWN -> finish(storage, id, attempt, StorageModel.State.U, step, null);
            case RENEW -> renew(storage, id, attempt, step, LONG);
            case LEASE_ENDS -> renew(storage, id, attempt, step, MOMENT);
            case CRASH -> {
                renew(storage, id, attempt, step, MOMENT);
                // Nothing is heard of it again.
                id.attempts.remove(attempt);
            }
            case COMPLETE_ALL -> throw new IllegalStateException("of every ID");
            case APPLIED, NOT_APPLIED -> {
                boolean applied = step.act == Act.APPLIED;
                long seen = Math.max(1, id.model.fence - (step.seldom ? 1 : 0));
                Resolution resolution = applied ? Resolution.APPLIED : Resolution.NOT_APPLIED;
                compare(step, () -> String.valueOf(storage.resolve(id.key, seen, resolution, RETENTION)), () -> {
                    boolean resolved = id.model.resolve(seen, applied);
                    id.allowed += resolved && !applied ? 1 : 0;
                    return String.valueOf(resolved);
                });
            }
            case DELETE ->
                compare(
                        step,
                        () -> String.valueOf(storage.delete(id.key)),
                        () -> String.valueOf(id.deleted(id.model.delete())));
            case LOOK -> look(id);
            case DELETE_UNCHANGED -> {
                if (step.takeOver) {
                    look(id);
                }
                compare(
                        step,
                        () -> String.valueOf(storage.deleteUnchanged(id.key, id.seen)),
                        () -> String.valueOf(id.deleted(id.model.deleteUnchanged(id.modelSeen))));
            }
        }
    }

    private void look(Id id) {
        id.seen = storage().find(id.key).orElse(null);
        id.modelSeen = id.model.look();
    }

    private void completeAll(IdempotenceStorage storage, List<Id> ids, Step step, int number) {
        List<CompletionRequest> requests = new ArrayList<>();
        List<Supplier<String>> models = new ArrayList<>();
        for (Id id : ids) {
            if (!id.attempts.isEmpty()) {
                Attempt by = id.attempts.get(step.attempt % id.attempts.size());
                Claim claim = claim(id.key, by);
                byte[] result = {(byte) number};
                requests.add(new CompletionRequest(claim, result, RETENTION));
                models.add(
                        () -> id.model.finish(StorageModel.State.C, by.owner, claim.fence(), by.fingerprint, result));
            }
        }
        compare(
                step,
                () -> storage.completeAll(requests).stream()
                        .map(outcome -> said(outcome.get()))
                        .toList()
                        .toString(),
                () -> models.stream().map(Supplier::get).toList().toString());
    }

    /** Both say the same; a call that got lost happened to neither, a reply that got lost was nobody's. */
    private static void compare(Step step, Supplier<String> storage, Supplier<String> model) {
        String expected = step.wire == Wire.LOSES_CALL ? "" : model.get();
        if (step.wire == Wire.WORKS) {
            assertThat(storage.get()).as("%s", step).isEqualTo(expected);
        } else {
            assertThatThrownBy(storage::get).isInstanceOf(StorageUnavailableException.class);
        }
    }

    private static void claim(IdempotenceStorage storage, Id id, Attempt by, Step step) {
        ClaimRequest request =
                new ClaimRequest(id.key, fingerprint(by.fingerprint), owner(by), LONG, RETENTION, by.takeOver);
        compare(step, () -> said(storage.claim(request)), () -> {
            long fenceBefore = id.model.fence;
            String said = id.model.claim(by.owner, by.fingerprint, by.takeOver);
            // Said again to its owner, a take-over is not another one.
            id.allowed += said.endsWith("taken over") && id.model.fence > fenceBefore ? 1 : 0;
            if (said.startsWith("claimed") && step.wire == Wire.WORKS) {
                by.fence = id.model.fence;
                id.runs += by.runs ? 0 : 1;
                by.runs = true;
            }
            return said;
        });
    }

    /** An owner that never learned of its claim does not run, and commits nothing. */
    private void commit(Id id, Attempt by) {
        BusinessTransaction transaction = businessTransaction();
        if (transaction != null && by.runs) {
            boolean committed = id.model.markApplied(by.owner, by.fence);
            id.effects += committed ? 1 : 0;
            assertThat(transaction.commit(claim(id.key, by))).as("committed").isEqualTo(committed);
        }
    }

    private void finish(
            IdempotenceStorage storage, Id id, Attempt by, StorageModel.State to, Step step, byte @Nullable [] result) {
        Claim claim = claim(id.key, by);
        Duration retention = step.seldom ? MOMENT : RETENTION;
        boolean[] forgotten = new boolean[1];
        compare(
                step,
                () -> said(
                        switch (to) {
                            case C -> storage.complete(claim, result, retention);
                            case D -> storage.completeProvisionally(claim, result, retention);
                            case R -> storage.release(claim, retention);
                            default -> storage.markUnknown(claim, retention);
                        }),
                () -> {
                    StorageModel.State before = id.model.state;
                    String said = id.model.finish(to, by.owner, claim.fence(), by.fingerprint, result);
                    boolean written = before != id.model.state;
                    id.allowed += written && to == StorageModel.State.R ? 1 : 0;
                    forgotten[0] = written && step.seldom;
                    return said;
                });
        if (forgotten[0]) {
            letPass(MOMENT.multipliedBy(2));
            id.model.vanish();
            id.forget();
        }
    }

    private void renew(IdempotenceStorage storage, Id id, Attempt by, Step step, Duration lease) {
        Claim claim = claim(id.key, by);
        compare(
                step,
                () -> said(storage.renew(claim, lease)),
                () -> id.model.renew(by.owner, claim.fence(), by.fingerprint, lease.equals(MOMENT)));
        if (lease.equals(MOMENT) && id.model.leaseOver) {
            letPass(MOMENT.multipliedBy(2));
        }
    }

    private static Owner owner(Attempt attempt) {
        return new Owner(0, attempt.owner);
    }

    /** An attempt that never learned of its claim acts as if it were the first. */
    private static Claim claim(StorageKey key, Attempt attempt) {
        return new Claim(key, fingerprint(attempt.fingerprint), owner(attempt), Math.max(1, attempt.fence));
    }

    private static Fingerprint fingerprint(int seed) {
        byte[] bytes = new byte[Fingerprint.BYTES];
        Arrays.fill(bytes, (byte) seed);
        return Fingerprint.of(bytes);
    }

    private static String said(ClaimResult result) {
        if (result instanceof ClaimResult.Claimed claimed) {
            return "claimed " + claimed.claim().fence() + (claimed.takenOver() ? " taken over" : "");
        }
        if (result instanceof ClaimResult.InProgress) {
            return "in progress";
        }
        if (result instanceof ClaimResult.Completed completed) {
            return "completed " + Arrays.toString(completed.result());
        }
        if (result instanceof ClaimResult.Abandoned abandoned) {
            return "abandoned " + abandoned.fence();
        }
        return result instanceof ClaimResult.KeyReused ? "key-reused" : "unknown";
    }

    private static String said(WriteResult result) {
        if (result instanceof WriteResult.Fenced fenced) {
            return "fenced " + fenced.fence() + " " + Arrays.toString(fenced.result());
        }
        if (result instanceof WriteResult.StoredAfterLoss) {
            return "stored after loss";
        }
        return result instanceof WriteResult.Done ? "done" : "lost";
    }
}
