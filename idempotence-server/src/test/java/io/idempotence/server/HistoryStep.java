package io.idempotence.server;

/**
 * One step of a random history.
 *
 * @param which selects the running execution that acts
 */
record HistoryStep(Act act, int process, int id, int which, Rule rule, boolean waits, Wire wire) {
    /** The kind of a step. */
    enum Act {
        CLAIM,
        SUCCEED,
        /** Its result is too large. */
        SUCCEED_WITHOUT_RESULT,
        FAIL,
        END_UNCERTAIN,
        /** A process dies, and another one takes its place. */
        CRASH,
        LEASES_END,
        APPLIED,
        NOT_APPLIED,
        /** Nothing, until all duplicates that wait for an ended execution have its result. */
        PAUSE
    }

    /** The operation's rule for abandoned executions. From {@link #YES} on it is a recovery rule, named after what it returns or does. */
    enum Rule {
        REFUSE,
        RE_EXECUTE,
        YES,
        NO,
        UNKNOWN,
        THROWS;

        boolean asks() {
            return compareTo(YES) >= 0;
        }
    }

    /** The failure of the calls in one step, if any. Calls in the background never fail. */
    enum Wire {
        WORKS,
        LOSES_CALLS,
        LOSES_REPLIES,
        LOSES_FIRST_REPLY,
        LOSES_SECOND_REPLY;

        boolean losesFirst() {
            return this == LOSES_CALLS || this == LOSES_REPLIES || this == LOSES_FIRST_REPLY;
        }

        boolean losesAll() {
            return this == LOSES_CALLS || this == LOSES_REPLIES;
        }
    }
}
