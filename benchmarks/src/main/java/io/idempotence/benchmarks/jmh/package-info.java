/** Measurements of what single steps cost, without network and storage. */
@NullMarked
package io.idempotence.benchmarks.jmh;

import org.jspecify.annotations.NullMarked;
