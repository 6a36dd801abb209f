package io.idempotence.benchmarks;

import java.time.Duration;

/**
 * One of the things that are compared.
 *
 * @param name as in the table
 * @param load does it for a while
 */
record Variant(String name, Load load) {
    /** Does the same thing again and again. */
    @FunctionalInterface
    interface Load {
        Sample run(Duration duration) throws Exception;
    }
}
