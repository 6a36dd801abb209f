package io.idempotence.client.internal.scope;

import io.idempotence.client.IdempotenceScope.Work;
import org.jspecify.annotations.Nullable;

/** What a thread is busy with, while it is. Where that nests, the innermost. Other threads do not see it. */
public final class ThreadBound<T> {
    private final ThreadLocal<@Nullable T> values = new ThreadLocal<>();

    public @Nullable T get() {
        return values.get();
    }

    public <R extends @Nullable Object, X extends Throwable> R during(T value, Work<R, X> work) throws X {
        T outer = values.get();
        values.set(value);
        try {
            return work.run();
        } finally {
            // Not removed, which costs more: the thread's next call takes the place again.
            values.set(outer);
        }
    }
}
