package io.idempotence.server;

import io.idempotence.http.Refusal;
import io.idempotence.server.HistoryStep.Rule;
import io.idempotence.server.HistoryStep.Wire;
import io.idempotence.server.storage.IdempotenceRecord.State;

/** The outcome of a claim according to the state table: what the attempt gets, and the record afterwards. */
record ExpectedOutcome(String said, Shown after) {
    /** The visible part of a record. A missing record looks like a released one. */
    record Shown(State state, long fence) {}

    /** @param ended what an attempt gets from a completed record */
    static ExpectedOutcome ofClaim(Shown before, String ended, Rule rule, Wire wire) {
        ExpectedOutcome first = wire == Wire.LOSES_CALLS
                ? new ExpectedOutcome("", before)
                : switch (before.state) {
                    case RELEASED -> run(before, false);
                    case IN_PROGRESS -> new ExpectedOutcome(Refusal.IN_PROGRESS.name(), before);
                    case COMPLETED -> new ExpectedOutcome(ended, before);
                    case UNKNOWN -> new ExpectedOutcome(Refusal.OUTCOME_UNKNOWN.name(), before);
                    case ABANDONED ->
                        rule == Rule.RE_EXECUTE
                                ? run(before, true)
                                : new ExpectedOutcome(Refusal.OUTCOME_UNKNOWN.name(), before);
                };
        if (wire.losesAll()) {
            return new ExpectedOutcome(Refusal.STORAGE_UNAVAILABLE.name(), first.after);
        }
        return before.state == State.ABANDONED ? recovered(first, rule, wire) : first;
    }

    private static ExpectedOutcome recovered(ExpectedOutcome first, Rule rule, Wire wire) {
        Shown before = first.after;
        // The second reply is that of the resolution, which is stored although its reply is lost.
        boolean lost = wire == Wire.LOSES_SECOND_REPLY;
        return switch (rule) {
            case YES ->
                new ExpectedOutcome(
                        (lost ? Refusal.STORAGE_UNAVAILABLE : Refusal.RESULT_UNAVAILABLE).name(),
                        new Shown(State.COMPLETED, before.fence));
            case NO ->
                lost
                        ? new ExpectedOutcome(
                                Refusal.STORAGE_UNAVAILABLE.name(), new Shown(State.RELEASED, before.fence))
                        : run(before, true);
            default -> first;
        };
    }

    private static ExpectedOutcome run(Shown before, boolean takenOver) {
        long fence = before.fence + 1;
        return new ExpectedOutcome(run(fence, takenOver), new Shown(State.IN_PROGRESS, fence));
    }

    static String run(long fence, boolean takenOver) {
        return "run " + fence + (takenOver ? " taken over" : "");
    }
}
