package io.idempotence.server;

import io.idempotence.server.IdempotenceListener.ReleaseReason;
import io.idempotence.server.IdempotencePolicy.Verdict;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/** The decision of a handler about its ID, and its declarations about effects, while it ran. Thread-safe. */
final class HandlerDecision {
    private enum Effect {
        UNDECLARED,
        NONE,
        SOME
    }

    private final AtomicReference<Effect> effect = new AtomicReference<>(Effect.UNDECLARED);
    private volatile @Nullable Verdict decided;
    private volatile boolean overtaken;
    private volatile ReleaseReason byPolicyFor = ReleaseReason.BY_TRANSPORT;

    void decide(Verdict verdict) {
        decided = verdict;
    }

    void overtaken() {
        overtaken = true;
        decided = Verdict.RELEASE;
    }

    void nothingTookEffect() {
        effect.updateAndGet(known -> known == Effect.SOME ? known : Effect.NONE);
    }

    void tookEffect() {
        effect.set(Effect.SOME);
    }

    /** Revokes what earlier transactions declared, because a repeated one has set its mark. */
    void mayTakeEffect() {
        effect.compareAndSet(Effect.NONE, Effect.UNDECLARED);
        overtaken = false;
        if (decided == Verdict.RELEASE) {
            decided = null;
        }
    }

    /** Stores the reason for which the policy would release the ID. */
    void byPolicyFor(ReleaseReason reason) {
        byPolicyFor = reason;
    }

    ReleaseReason releaseReason() {
        if (!decidedToRelease()) {
            return byPolicyFor;
        }
        return overtaken ? ReleaseReason.OVERTAKEN : ReleaseReason.BY_HANDLER;
    }

    boolean isOvertaken() {
        return overtaken;
    }

    boolean decidedToRelease() {
        return decided == Verdict.RELEASE;
    }

    /** Returns the policy's verdict, or {@code RELEASE} instead of {@code UNKNOWN} if nothing took effect. */
    Verdict knowing(Verdict byPolicy) {
        return byPolicy == Verdict.UNKNOWN && effect.get() == Effect.NONE ? Verdict.RELEASE : byPolicy;
    }

    /** Returns what the handler asked for, else the policy's verdict. */
    Verdict asked(Verdict byPolicy) {
        Verdict handler = decided;
        return handler != null ? handler : byPolicy;
    }

    /** Returns what was asked for, or {@code UNKNOWN} instead of {@code RELEASE} if something took effect. */
    Verdict verdict(Verdict byPolicy) {
        Verdict asked = asked(byPolicy);
        return asked == Verdict.RELEASE && effect.get() == Effect.SOME ? Verdict.UNKNOWN : asked;
    }
}
