package io.idempotence.server.storage;

import java.time.Duration;

/** The result of a claim. The numbers are those of the state machine in {@code docs/design.md}. */
public sealed interface ClaimResult {
    /**
     * {@return the result of an execution that took effect but whose response is not stored: one byte, 0. No other result is this byte
     * alone}
     */
    static byte[] noResult() {
        return new byte[] {0};
    }

    /**
     * A granted claim: run (T1, T2, T7, T8).
     *
     * @param claim the right to run
     * @param takenOver whether it was taken from an abandoned owner (T7); the same value if the claim is repeated (T2)
     */
    record Claimed(Claim claim, boolean takenOver) implements ClaimResult {}

    /**
     * A live claim of another owner (T3), or the caller's own claim that was released (T8).
     *
     * @param leaseLeft the time until that claim counts as abandoned unless it is renewed; zero for the caller's own released claim
     */
    record InProgress(Duration leaseLeft) implements ClaimResult {}

    /**
     * A completed ID: replay (T5).
     *
     * @param result the bytes given to {@link IdempotenceStorage#complete}; must not be changed
     */
    record Completed(byte[] result) implements ClaimResult {}

    /** An ID of a request with another fingerprint, whatever its state (T4). */
    record KeyReused() implements ClaimResult {}

    /**
     * A claim whose lease is over and under which nothing was recorded (T6).
     *
     * @param fence the fence of the abandoned claim
     */
    record Abandoned(long fence) implements ClaimResult {}

    /** An ID that is marked unknown (T18). */
    record Unknown() implements ClaimResult {}
}
