package io.idempotence.benchmarks;

import java.time.Duration;
import java.util.function.Supplier;

/**
 * One of the things that are compared.
 *
 * @param name as in the table
 * @param load does it for a while
 */
record Variant(String name, Load load) {
    /** A load that does the same thing again and again. */
    @FunctionalInterface
    interface Load {
        Sample run(Duration duration) throws Exception;

        /** The same load, with what it used. */
        default Load measuredBy(Supplier<Usage> meter) {
            return duration -> {
                Usage before = meter.get();
                Sample sample = run(duration);
                return new Sample(
                        sample.nanos(),
                        sample.latencies(),
                        sample.refused(),
                        meter.get().minus(before));
            };
        }
    }
}
