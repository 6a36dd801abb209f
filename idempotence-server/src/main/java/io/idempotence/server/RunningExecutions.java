package io.idempotence.server;

import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** The executions that a thread is part of, innermost first. */
final class RunningExecutions {
    private static final ThreadLocal<@Nullable List<IdempotentExecution>> CURRENT = new ThreadLocal<>();

    private RunningExecutions() {}

    static List<IdempotentExecution> current() {
        List<IdempotentExecution> running = CURRENT.get();
        return running == null ? List.of() : running;
    }

    /** Adds an execution as the innermost one. The returned task restores the state from before, on the same thread. */
    static Runnable enter(IdempotentExecution execution) {
        List<IdempotentExecution> before = CURRENT.get();
        CURRENT.set(
                before == null || before.isEmpty()
                        ? List.of(execution)
                        : Stream.concat(Stream.of(execution), before.stream()).toList());
        // Set, not removed: the thread's next execution uses the entry again.
        return () -> CURRENT.set(before);
    }
}
