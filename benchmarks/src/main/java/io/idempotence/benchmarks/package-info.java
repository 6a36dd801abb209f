/** Measurements of what both halves cost. Every comparison runs its variants in turn, in one run, and compares within a round. */
@NullMarked
package io.idempotence.benchmarks;

import org.jspecify.annotations.NullMarked;
