package io.idempotence.benchmarks;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.HdrHistogram.Histogram;

/**
 * Threads that each do one operation after the other: the next one begins when the last one has ended. What they call with is
 * made once and kept over the rounds: connections that come and go would have the JVM compile the server anew in each.
 */
final class ThreadedLoad implements Variant.Load, AutoCloseable {
    private final int threads;
    private final Callable<? extends Caller> newCaller;
    private final List<Caller> callers = new ArrayList<>();

    /** The caller of one thread. */
    @FunctionalInterface
    interface Caller extends AutoCloseable {
        /** Returns false if it was refused. */
        boolean call() throws Exception;

        @Override
        default void close() throws IOException {}
    }

    ThreadedLoad(int threads, Callable<? extends Caller> newCaller) {
        this.threads = threads;
        this.newCaller = newCaller;
    }

    @Override
    public Sample run(Duration duration) throws Exception {
        while (callers.size() < threads) {
            callers.add(newCaller.call());
        }
        AtomicInteger number = new AtomicInteger();
        ExecutorService pool =
                Executors.newFixedThreadPool(threads, task -> new Thread(task, "caller-" + number.incrementAndGet()));
        try {
            long start = System.nanoTime();
            long end = start + duration.toNanos();
            List<Callable<Loop>> loops = new ArrayList<>();
            for (Caller caller : callers) {
                loops.add(() -> callUntil(caller, end));
            }
            Histogram all = new Histogram(3);
            long refused = 0;
            long ended = end;
            for (Future<Loop> loop : pool.invokeAll(loops)) {
                all.add(loop.get().latencies);
                refused += loop.get().refused;
                ended = Math.max(ended, loop.get().ended);
            }
            return new Sample(ended - start, all, refused, Usage.NONE);
        } finally {
            pool.shutdown();
        }
    }

    private record Loop(Histogram latencies, long refused, long ended) {}

    private static Loop callUntil(Caller caller, long end) throws Exception {
        Histogram latencies = new Histogram(3);
        long refused = 0;
        long before = System.nanoTime();
        while (before < end) {
            boolean served = caller.call();
            long after = System.nanoTime();
            if (served) {
                latencies.recordValue(after - before);
            } else {
                refused++;
            }
            before = after;
        }
        return new Loop(latencies, refused, before);
    }

    @Override
    public void close() throws IOException {
        for (Caller caller : callers) {
            caller.close();
        }
    }
}
