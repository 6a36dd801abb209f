package io.idempotence.internal;

import java.util.concurrent.ThreadFactory;

/** The factories of this library's own threads. */
public final class DaemonThreads {
    private DaemonThreads() {}

    /**
     * A factory of daemons with one name. They inherit the context class loader, but no thread-locals: those of the request that happens to
     * need the first thread may hold its user, and would stay for as long as the thread.
     */
    public static ThreadFactory named(String name) {
        return task -> {
            Thread thread = new Thread(null, task, name, 0, false);
            thread.setDaemon(true);
            // From Java 19 on, a thread that inherits no thread-locals does not inherit it either.
            thread.setContextClassLoader(Thread.currentThread().getContextClassLoader());
            return thread;
        };
    }
}
