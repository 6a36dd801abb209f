package io.idempotence.server;

/**
 * One step of a random history.
 *
 * @param which of the executions that run acts
 */
record HistoryStep(Act act, int process, int id, int which, Rule rule, boolean waits, Wire wire) {
    /** What happens. */
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

    /** What the operation says of an abandoned execution; from the third on, what its recovery does when it is asked. */
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

    /** What becomes of the calls of one step; the background always gets through. */
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
