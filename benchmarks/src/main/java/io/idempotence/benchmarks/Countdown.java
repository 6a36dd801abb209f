package io.idempotence.benchmarks;

import java.io.PrintStream;
import java.time.Duration;

/** A display of how far a measurement is and how long it still takes, by the time that it took so far. */
final class Countdown {
    private final PrintStream out;
    private final int steps;
    private final long start = System.nanoTime();
    private int done;

    /** @param expected of all steps together */
    Countdown(PrintStream out, int steps, Duration expected) {
        this.out = out;
        this.steps = steps;
        out.printf("this takes about %s%n", inWords(expected));
    }

    void done(int more, String what) {
        done += more;
        long left = (System.nanoTime() - start) / done * (steps - done);
        out.printf("%s; about %s left%n", what, inWords(Duration.ofNanos(left)));
    }

    private static String inWords(Duration duration) {
        long seconds = duration.toSeconds();
        return seconds >= 90 ? (seconds + 30) / 60 + " min" : seconds + " s";
    }
}
