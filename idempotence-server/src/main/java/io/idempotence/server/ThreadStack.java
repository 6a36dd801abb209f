package io.idempotence.server;

import io.idempotence.internal.ThreadBound;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.function.Function;
import java.util.stream.Stream;

/** The values that each thread, or task of a fork-join worker, has entered and not left, innermost first. */
final class ThreadStack<T> {
    private final ThreadBound<List<T>> entered = new ThreadBound<>();

    /** The values of this thread or task. */
    List<T> values() {
        List<T> values = entered.get();
        return values == null ? List.of() : values;
    }

    /** Adds a value as the innermost one. The returned task restores the state from before, on the same thread. */
    Runnable enter(T value) {
        List<T> before = values();
        return entered.enter(
                before.isEmpty()
                        ? List.of(value)
                        : Stream.concat(Stream.of(value), before.stream()).toList());
    }

    /** Removes a value, if it is one of this thread's. The returned task restores the state from before, on the same thread. */
    Runnable leave(T value) {
        List<T> before = values();
        return entered.enter(isOnly(value, before) ? null : without(value, before));
    }

    private static <T> boolean isOnly(T value, List<T> values) {
        return values.size() == 1 && values.get(0) == value;
    }

    private static <T> List<T> without(T value, List<T> values) {
        return values.stream().filter(each -> each != value).toList();
    }

    /**
     * Carries the values of this thread to the thread that runs a task.
     *
     * @param enter enters a value, and returns what leaves it
     */
    Runnable carried(Runnable task, Function<? super T, Runnable> enter) {
        Objects.requireNonNull(task, "task");
        List<T> values = values();
        if (values.isEmpty()) {
            return task;
        }
        return () -> {
            Deque<Runnable> leave = new ArrayDeque<>();
            try {
                for (int i = values.size() - 1; i >= 0; i--) {
                    leave.push(enter.apply(values.get(i)));
                }
                task.run();
            } finally {
                leave.forEach(Runnable::run);
            }
        };
    }
}
