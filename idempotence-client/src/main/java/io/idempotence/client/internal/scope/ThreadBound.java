package io.idempotence.client.internal.scope;

import org.jspecify.annotations.Nullable;

/** A value that is bound to a thread while a task runs. Nested tasks see the innermost value. Other threads do not see it. */
public final class ThreadBound<T> {
    @SuppressWarnings("ThreadLocalUsage") // One for each kind of value; its owner decides how long it lives.
    private final ThreadLocal<@Nullable T> values = new ThreadLocal<>();

    /** A task that runs with a value bound to its thread. */
    @FunctionalInterface
    public interface Task<R extends @Nullable Object, X extends Throwable> {
        R run() throws X;
    }

    public @Nullable T get() {
        return values.get();
    }

    /** @param value the value; null hides an outer one */
    public <R extends @Nullable Object, X extends Throwable> R during(@Nullable T value, Task<R, X> task) throws X {
        T outer = values.get();
        values.set(value);
        try {
            return task.run();
        } finally {
            // Set, not removed, because removing costs more, and the thread's next call uses the entry again.
            values.set(outer);
        }
    }
}
