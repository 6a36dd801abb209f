package io.idempotence.cli;

import java.io.PrintStream;
import java.time.Duration;

/** Says on standard error how far a walk has come, if it takes long. */
final class Progress {
    private static final int RECORDS_BETWEEN_LOOKS = 500;

    private final PrintStream err;
    private final Duration pause;
    private long walked;
    private long toldAt = System.nanoTime();

    Progress(PrintStream err, Duration pause) {
        this.err = err;
        this.pause = pause;
    }

    void step() {
        walked++;
        if (walked % RECORDS_BETWEEN_LOOKS == 0 && System.nanoTime() - toldAt >= pause.toNanos()) {
            toldAt = System.nanoTime();
            err.println("... " + walked + " records walked");
        }
    }
}
