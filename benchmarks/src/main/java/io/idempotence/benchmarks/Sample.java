package io.idempotence.benchmarks;

import org.HdrHistogram.Histogram;

/**
 * The measurements of one variant in one round.
 *
 * @param nanos how long the round took
 * @param latencies of every operation, in nanoseconds; its count is the number of operations
 * @param refused how many operations were refused; they count nowhere else
 * @param usage what the round used, as far as it is measured
 */
record Sample(long nanos, Histogram latencies, long refused, Usage usage) {
    double perSecond() {
        return latencies.getTotalCount() * 1e9 / nanos;
    }

    /** In microseconds. */
    double percentile(double percentile) {
        return latencies.getValueAtPercentile(percentile) / 1e3;
    }

    double p50() {
        return percentile(50);
    }

    /** Microseconds of the JVM for each operation. Other processes disturb it less than the time on the clock. */
    double cpu() {
        return perOperation(usage.cpuNanos()) / 1e3;
    }

    /** Microseconds of the Redis server for each operation. */
    double redisCpu() {
        return perOperation(usage.redisCpuNanos()) / 1e3;
    }

    /** Bytes for each operation. */
    double allocated() {
        return perOperation(usage.allocatedBytes());
    }

    private double perOperation(long total) {
        return (double) total / latencies.getTotalCount();
    }
}
