package io.idempotence.benchmarks;

import org.HdrHistogram.Histogram;

/**
 * What one variant did in one round.
 *
 * @param nanos how long the round took
 * @param latencies of every operation, in nanoseconds; its count is the number of operations
 * @param cpuNanos what this JVM, callers included, had of the processors
 * @param redisCpuNanos what the Redis server had of them, if it was asked
 */
record Sample(long nanos, Histogram latencies, long cpuNanos, long redisCpuNanos) {
    double perSecond() {
        return latencies.getTotalCount() * 1e9 / nanos;
    }

    /** In microseconds. */
    double percentile(double percentile) {
        return latencies.getValueAtPercentile(percentile) / 1e3;
    }

    /** Of this JVM, in microseconds for each operation. Other processes disturb it less than the time on the clock. */
    double cpu() {
        return cpuNanos / 1e3 / latencies.getTotalCount();
    }

    /** Of the Redis server, in microseconds for each operation. */
    double redisCpu() {
        return redisCpuNanos / 1e3 / latencies.getTotalCount();
    }

    double p50() {
        return percentile(50);
    }
}
