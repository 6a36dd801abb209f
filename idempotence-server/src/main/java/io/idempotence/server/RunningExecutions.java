package io.idempotence.server;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** The executions that a thread is part of, innermost first. */
final class RunningExecutions {
    private static final ThreadLocal<@Nullable List<ClaimedExecution>> CURRENT = new ThreadLocal<>();

    private RunningExecutions() {}

    static List<IdempotentExecution> current() {
        List<ClaimedExecution> running = CURRENT.get();
        return running == null ? List.of() : List.copyOf(running);
    }

    static Runnable carried(Runnable task) {
        Objects.requireNonNull(task, "task");
        List<ClaimedExecution> running = CURRENT.get();
        if (running == null || running.isEmpty()) {
            return task;
        }
        return () -> {
            Deque<Runnable> leave = new ArrayDeque<>();
            try {
                for (int i = running.size() - 1; i >= 0; i--) {
                    leave.push(running.get(i).enter());
                }
                task.run();
            } finally {
                leave.forEach(Runnable::run);
            }
        };
    }

    /** Adds an execution as the innermost one. The returned task restores the state from before, on the same thread. */
    static Runnable enter(ClaimedExecution execution) {
        List<ClaimedExecution> before = CURRENT.get();
        CURRENT.set(
                before == null || before.isEmpty()
                        ? List.of(execution)
                        : Stream.concat(Stream.of(execution), before.stream()).toList());
        // Set, not removed: the thread's next execution uses the entry again.
        return () -> CURRENT.set(before);
    }
}
