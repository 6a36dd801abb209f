package io.idempotence.examples.payments;

import io.idempotence.examples.console.Consoles;
import java.io.PrintStream;
import java.util.concurrent.atomic.AtomicInteger;
import me.tongfei.progressbar.ConsoleProgressBarConsumer;
import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;
import me.tongfei.progressbar.ProgressBarStyle;

/** A display of how far a mode has come: a moving bar on a terminal, five plain lines elsewhere. Thread-safe. */
abstract class Progress implements AutoCloseable {
    abstract void step();

    @Override
    public abstract void close();

    static Progress none() {
        return new Progress() {
            @Override
            void step() {}

            @Override
            public void close() {}
        };
    }

    static Progress show(String task, int max, PrintStream out) {
        return Consoles.isTerminal() ? new Bar(task, max, out) : new Lines(task, max, out);
    }

    private static final class Bar extends Progress {
        private final ProgressBar bar;

        Bar(String task, int max, PrintStream out) {
            bar = new ProgressBarBuilder()
                    .setTaskName(task)
                    .setInitialMax(max)
                    .setStyle(ProgressBarStyle.ASCII)
                    .setUpdateIntervalMillis(100)
                    .hideEta()
                    .setConsumer(new ConsoleProgressBarConsumer(out))
                    .build();
        }

        @Override
        void step() {
            bar.step();
        }

        @Override
        public void close() {
            bar.close();
        }
    }

    private static final class Lines extends Progress {
        private static final int PARTS = 5;

        private final String task;
        private final int max;
        private final PrintStream out;
        private final AtomicInteger done = new AtomicInteger();

        Lines(String task, int max, PrintStream out) {
            this.task = task;
            this.max = max;
            this.out = out;
        }

        @Override
        synchronized void step() {
            int now = done.incrementAndGet();
            if (now * (long) PARTS / max != (now - 1) * (long) PARTS / max) {
                out.println(task + ": " + now + " of " + max);
            }
        }

        @Override
        public void close() {}
    }
}
