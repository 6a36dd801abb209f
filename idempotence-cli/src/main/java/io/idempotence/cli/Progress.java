package io.idempotence.cli;

import java.io.PrintStream;
import java.time.Duration;

/** The progress of a command that reads many records, on standard error. */
final class Progress {
    private static final int RECORDS_BETWEEN_LOOKS = 500;

    private final PrintStream err;
    private final Duration pause;
    private long read;
    private long shownAt = System.nanoTime();

    Progress(PrintStream err, Duration pause) {
        this.err = err;
        this.pause = pause;
    }

    void step() {
        read++;
        if (read % RECORDS_BETWEEN_LOOKS == 0 && System.nanoTime() - shownAt >= pause.toNanos()) {
            shownAt = System.nanoTime();
            err.println("... " + read + " records read so far");
        }
    }
}
