package io.idempotence.spring.method;

import org.jspecify.annotations.Nullable;

/** The outcome of a method: what it returned or threw. */
record MethodOutcome(@Nullable Object returned, @Nullable Throwable thrown) {
    @Nullable
    Object get() throws Throwable {
        if (thrown != null) {
            throw thrown;
        }
        return returned;
    }
}
