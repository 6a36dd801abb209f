package io.idempotence.benchmarks;

import org.HdrHistogram.Histogram;

/**
 * What one variant did in one round.
 *
 * @param nanos how long the round took
 * @param latencies of every operation, in nanoseconds; its count is the number of operations
 */
record Sample(long nanos, Histogram latencies) {
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
}
