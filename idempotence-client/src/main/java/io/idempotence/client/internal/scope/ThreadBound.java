package io.idempotence.client.internal.scope;

import org.jspecify.annotations.Nullable;

/** What a thread is busy with, while it is. Where that nests, the innermost. Other threads do not see it. */
public final class ThreadBound<T> {
    private final ThreadLocal<@Nullable T> values = new ThreadLocal<>();

    /** What a thread does with a value bound to it. */
    @FunctionalInterface
    public interface Task<R extends @Nullable Object, X extends Throwable> {
        R run() throws X;
    }

    public @Nullable T get() {
        return values.get();
    }

    /** @param value null hides the value around it */
    public <R extends @Nullable Object, X extends Throwable> R during(@Nullable T value, Task<R, X> task) throws X {
        T outer = values.get();
        values.set(value);
        try {
            return task.run();
        } finally {
            // Not removed, which costs more: the thread's next call takes the place again.
            values.set(outer);
        }
    }
}
