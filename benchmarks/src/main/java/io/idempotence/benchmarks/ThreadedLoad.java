package io.idempotence.benchmarks;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.HdrHistogram.Histogram;

/** Threads that each do one operation after the other: the next one begins when the last one has ended. */
final class ThreadedLoad implements Variant.Load {
    private final int threads;
    private final Callable<? extends Caller> newCaller;

    /** What one thread does. */
    @FunctionalInterface
    interface Caller extends AutoCloseable {
        void call() throws Exception;

        @Override
        default void close() throws Exception {}
    }

    ThreadedLoad(int threads, Callable<? extends Caller> newCaller) {
        this.threads = threads;
        this.newCaller = newCaller;
    }

    @Override
    public Sample run(Duration duration) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try {
            long cpu = cpuNanos();
            long start = System.nanoTime();
            long end = start + duration.toNanos();
            List<Callable<Loop>> loops = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                loops.add(() -> callUntil(end));
            }
            Histogram all = new Histogram(3);
            long ended = end;
            for (Future<Loop> loop : pool.invokeAll(loops)) {
                all.add(loop.get().latencies);
                ended = Math.max(ended, loop.get().ended);
            }
            return new Sample(ended - start, all, cpuNanos() - cpu, 0);
        } finally {
            pool.shutdown();
        }
    }

    private static long cpuNanos() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    private record Loop(Histogram latencies, long ended) {}

    private Loop callUntil(long end) throws Exception {
        Histogram latencies = new Histogram(3);
        try (Caller caller = newCaller.call()) {
            long before = System.nanoTime();
            while (before < end) {
                caller.call();
                long after = System.nanoTime();
                latencies.recordValue(after - before);
                before = after;
            }
            return new Loop(latencies, before);
        }
    }
}
