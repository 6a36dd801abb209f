package io.idempotence.server;

import java.util.concurrent.ThreadFactory;
import java.util.function.Function;
import java.util.function.Predicate;

/** The thread factories of a process that may have reached its limit of threads, by the names of the threads. */
final class ThreadLimit implements Function<String, ThreadFactory> {
    private volatile Predicate<String> reached = name -> false;

    /** From now on, no thread of these names can be started. */
    void reachedFor(Predicate<String> names) {
        reached = names;
    }

    void reached() {
        reachedFor(name -> true);
    }

    void lifted() {
        reachedFor(name -> false);
    }

    @Override
    public ThreadFactory apply(String name) {
        return task -> {
            // Here and not in the thread's start, which executors of newer JDKs do not call.
            if (reached.test(name)) {
                throw new OutOfMemoryError("unable to create native thread");
            }
            Thread thread = new Thread(task, name);
            thread.setDaemon(true);
            return thread;
        };
    }
}
