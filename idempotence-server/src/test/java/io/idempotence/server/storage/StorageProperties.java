package io.idempotence.server.storage;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.IdempotenceId;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;

/**
 * Random histories of one ID: several owners claim, renew, complete, release, mark and crash in any order, answers get lost and calls are
 * sent again, leases end, an operator decides. After each step the storage has said and shows what {@link StorageModel} says. jqwik
 * shrinks a history that fails to a short one. Extend it, as {@link IdempotenceStorageContract}.
 */
public abstract class StorageProperties {
    private static final Duration LONG = Duration.ofMinutes(10);
    private static final Duration RETENTION = Duration.ofHours(1);

    /** An open storage, not closed here. */
    protected abstract IdempotenceStorage storage();

    /** Returns when the storage's own clock has gone on by at least {@code duration}. */
    protected abstract void letPass(Duration duration);

    /** What happens. */
    enum Act {
        CLAIM,
        CLAIM_AGAIN,
        COMPLETE,
        RELEASE,
        MARK_UNKNOWN,
        RENEW,
        LEASE_ENDS,
        APPLIED,
        NOT_APPLIED,
        DELETE
    }

    /**
     * One step.
     *
     * @param attempt which of the attempts so far acts; a claim is a new one
     * @param other the claim is of another request
     * @param takeOver as the policy says
     * @param lost the answer gets lost: the attempt does not learn what became of its call
     */
    record Step(Act act, int attempt, boolean other, boolean takeOver, boolean lost) {}

    /** An attempt, and what it knows. */
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

    @Provide
    Arbitrary<List<Step>> histories() {
        Arbitrary<Act> acts = Arbitraries.frequency(
                net.jqwik.api.Tuple.of(8, Act.CLAIM),
                net.jqwik.api.Tuple.of(3, Act.CLAIM_AGAIN),
                net.jqwik.api.Tuple.of(4, Act.COMPLETE),
                net.jqwik.api.Tuple.of(5, Act.RELEASE),
                net.jqwik.api.Tuple.of(2, Act.MARK_UNKNOWN),
                net.jqwik.api.Tuple.of(2, Act.RENEW),
                net.jqwik.api.Tuple.of(4, Act.LEASE_ENDS),
                net.jqwik.api.Tuple.of(1, Act.APPLIED),
                net.jqwik.api.Tuple.of(1, Act.NOT_APPLIED),
                net.jqwik.api.Tuple.of(1, Act.DELETE));
        Arbitrary<Boolean> seldom =
                Arbitraries.frequency(net.jqwik.api.Tuple.of(9, false), net.jqwik.api.Tuple.of(1, true));
        return Combinators.combine(
                        acts,
                        Arbitraries.integers().between(0, 5),
                        seldom,
                        Arbitraries.of(true, false),
                        Arbitraries.of(true, false))
                .as(Step::new)
                .list()
                .ofMinSize(1)
                .ofMaxSize(40);
    }

    @Property(tries = 250)
    void everyHistoryIsOneOfTheModel(@ForAll("histories") List<Step> history) {
        StorageKey key = StorageKey.of(
                "model", "", "", new IdempotenceId(UUID.randomUUID().toString()));
        StorageModel model = new StorageModel();
        List<Attempt> attempts = new ArrayList<>();
        int runs = 0;
        int allowed = 1;
        long fence = 0;
        byte[] completed = null;
        for (int i = 0; i < history.size(); i++) {
            Step step = history.get(i);
            if (attempts.isEmpty() && step.act != Act.CLAIM && step.act != Act.DELETE) {
                continue;
            }
            Attempt attempt = attempts.isEmpty() ? null : attempts.get(step.attempt % attempts.size());
            String said;
            String expected;
            switch (step.act) {
                case CLAIM, CLAIM_AGAIN -> {
                    boolean again = step.act == Act.CLAIM_AGAIN && attempt != null;
                    Attempt by = again ? attempt : new Attempt(i + 1L, step.other ? 2 : 1, step.takeOver);
                    if (!again) {
                        attempts.add(by);
                    }
                    said = said(storage()
                            .claim(new ClaimRequest(
                                    key, fingerprint(by.fingerprint), owner(by), LONG, RETENTION, by.takeOver)));
                    long fenceBefore = model.fence;
                    expected = model.claim(by.owner, by.fingerprint, by.takeOver);
                    if (said.startsWith("claimed") && !step.lost && !by.runs) {
                        by.runs = true;
                        by.fence = model.fence;
                        runs++;
                    } else if (said.startsWith("claimed")) {
                        by.fence = model.fence;
                    }
                    // Said again to its owner, a take-over is not another one.
                    allowed += said.endsWith("taken over") && model.fence > fenceBefore ? 1 : 0;
                }
                case COMPLETE, RELEASE, MARK_UNKNOWN -> {
                    byte[] result = {(byte) i};
                    Claim claim = claim(key, attempt);
                    StorageModel.State to = step.act == Act.COMPLETE
                            ? StorageModel.State.C
                            : step.act == Act.RELEASE ? StorageModel.State.R : StorageModel.State.U;
                    said = said(
                            switch (to) {
                                case C -> storage().complete(claim, result, RETENTION);
                                case R -> storage().release(claim, RETENTION);
                                default -> storage().markUnknown(claim, RETENTION);
                            });
                    boolean wasReleased = model.state == StorageModel.State.R;
                    expected = model.finish(
                            to,
                            attempt.owner,
                            claim.fence(),
                            attempt.fingerprint,
                            to == StorageModel.State.C ? result : null);
                    allowed += said.equals("done") && to == StorageModel.State.R && !wasReleased ? 1 : 0;
                }
                case RENEW, LEASE_ENDS -> {
                    boolean ends = step.act == Act.LEASE_ENDS;
                    Claim claim = claim(key, attempt);
                    said = said(storage().renew(claim, ends ? Duration.ofMillis(1) : LONG));
                    expected = model.renew(attempt.owner, claim.fence(), attempt.fingerprint, ends);
                    if (ends) {
                        letPass(Duration.ofMillis(2));
                    }
                }
                case APPLIED, NOT_APPLIED -> {
                    boolean applied = step.act == Act.APPLIED;
                    long seen = model.fence - (step.lost ? 1 : 0);
                    Resolution resolution = applied ? Resolution.APPLIED : Resolution.NOT_APPLIED;
                    said = String.valueOf(storage().resolve(key, Math.max(1, seen), resolution, RETENTION));
                    expected = String.valueOf(model.resolve(Math.max(1, seen), applied));
                    allowed += said.equals("true") && !applied ? 1 : 0;
                }
                default -> {
                    said = String.valueOf(storage().delete(key));
                    expected = String.valueOf(model.state != StorageModel.State.ABSENT);
                    model = new StorageModel();
                    // What was forgotten may run again: that is what a delete is for.
                    allowed++;
                    fence = 0;
                    completed = null;
                }
            }
            assertThat(said).as("step %d, %s", i, step).isEqualTo(expected);
            String shown = storage()
                    .find(key)
                    .map(found -> found.state() + " " + found.fence())
                    .orElse("none");
            assertThat(shown).as("after step %d, %s", i, step).isEqualTo(model.shown());
            assertThat(runs).as("executions").isLessThanOrEqualTo(allowed);
            assertThat(model.fence).as("fence").isGreaterThanOrEqualTo(fence);
            fence = model.fence;
            if (completed != null) {
                assertThat(model.result).as("a completed record never changes").isEqualTo(completed);
            }
            completed = model.state == StorageModel.State.C ? model.result : null;
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
        return result instanceof ClaimResult.Mismatch ? "mismatch" : "unknown";
    }

    private static String said(WriteResult result) {
        if (result instanceof WriteResult.Fenced fenced) {
            return "fenced " + Arrays.toString(fenced.result());
        }
        if (result instanceof WriteResult.StoredAfterLoss) {
            return "stored after loss";
        }
        return result instanceof WriteResult.Done ? "done" : "lost";
    }
}
