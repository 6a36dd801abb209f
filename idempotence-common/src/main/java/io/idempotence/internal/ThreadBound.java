package io.idempotence.internal;

import java.util.concurrent.ForkJoinWorkerThread;
import org.jspecify.annotations.Nullable;

/**
 * A value that is bound to a thread while a task runs. Nested tasks see the innermost value. Other threads do not see it. While a worker
 * of a fork-join pool waits for a future, it runs other tasks of its pool, which have nothing to do with the waiting one. They do not see
 * the value either.
 */
public final class ThreadBound<T> {
    private static final StackWalker STACK = StackWalker.getInstance();

    @SuppressWarnings("ThreadLocalUsage") // One for each kind of value; its owner decides how long it lives.
    private final ThreadLocal<@Nullable Bound<T>> innermost = new ThreadLocal<>();

    /**
     * A value, and where it is visible.
     *
     * @param tasks how many fork-join tasks ran in the thread, one on top of the other, when the value was bound
     */
    private record Bound<T>(T value, long tasks) {}

    /** A task that runs with a value bound to its thread. */
    @FunctionalInterface
    public interface Task<R extends @Nullable Object, X extends Throwable> {
        R run() throws X;
    }

    public @Nullable T get() {
        Bound<T> bound = innermost.get();
        return bound == null || bound.tasks != forkJoinTasks() ? null : bound.value;
    }

    /**
     * Binds a value.
     *
     * @param value the value; null hides an outer one
     * @return restores the state from before; run it on the same thread
     */
    public Runnable enter(@Nullable T value) {
        Bound<T> outer = innermost.get();
        innermost.set(value == null ? null : new Bound<>(value, forkJoinTasks()));
        // Set, not removed, because removing costs more, and the thread's next value uses the entry again.
        return () -> innermost.set(outer);
    }

    /** @param value the value; null hides an outer one */
    public <R extends @Nullable Object, X extends Throwable> R during(@Nullable T value, Task<R, X> task) throws X {
        Runnable leave = enter(value);
        try {
            return task.run();
        } finally {
            leave.run();
        }
    }

    /** The number of fork-join tasks on the stack of this thread; 0 if it is not a worker of a pool. */
    private static long forkJoinTasks() {
        if (!(Thread.currentThread() instanceof ForkJoinWorkerThread)) {
            return 0;
        }
        return STACK.walk(frames -> frames.filter(ThreadBound::runsATask).count());
    }

    private static boolean runsATask(StackWalker.StackFrame frame) {
        return frame.getClassName().equals("java.util.concurrent.ForkJoinTask")
                && frame.getMethodName().equals("doExec");
    }
}
