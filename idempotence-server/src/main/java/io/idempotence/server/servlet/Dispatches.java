package io.idempotence.server.servlet;

import io.idempotence.server.ClaimedExecution;
import jakarta.servlet.http.HttpServletRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;

/**
 * The dispatches of one request, shared by the thread that dispatches and the threads of asynchronous handlers. As an executor it runs
 * the listeners of non-blocking streams as a container would: on a thread of its own, after the dispatch.
 */
final class Dispatches implements Executor {
    private final ClaimedExecution execution;

    // Guarded by this object's lock, which is never held across I/O.
    private final List<Runnable> afterDispatch = new ArrayList<>();
    private HttpServletRequest container;
    private boolean dispatching;
    private boolean completing;
    private boolean asyncStarted;

    Dispatches(ClaimedExecution execution, HttpServletRequest container) {
        this.execution = execution;
        this.container = container;
    }

    /** @param arrived the request as the filters in front have it in this dispatch */
    synchronized void enter(HttpServletRequest arrived) {
        container = arrived;
        dispatching = true;
        completing = false;
        asyncStarted = false;
    }

    /** The request as the filters in front have it in the latest dispatch. */
    synchronized HttpServletRequest container() {
        return container;
    }

    /** Whether the handler has completed its asynchronous processing in this dispatch. */
    boolean leave() {
        List<Runnable> tasks;
        boolean complete;
        synchronized (this) {
            dispatching = false;
            complete = completing;
            tasks = List.copyOf(afterDispatch);
            afterDispatch.clear();
        }
        start(tasks);
        return complete;
    }

    /** A handler may complete and go on writing: a container ends the response only when the dispatch returns. */
    synchronized boolean completesAfterDispatch() {
        completing |= dispatching;
        return dispatching;
    }

    synchronized void startedAsync() {
        asyncStarted = true;
    }

    /** Whether the handler has started asynchronous processing in the latest dispatch. */
    synchronized boolean asyncStarted() {
        return asyncStarted;
    }

    @Override
    public void execute(Runnable task) {
        synchronized (this) {
            if (dispatching) {
                afterDispatch.add(task);
                return;
            }
        }
        start(List.of(task));
    }

    private void start(List<Runnable> tasks) {
        if (!tasks.isEmpty()) {
            container().getAsyncContext().start(entered(() -> tasks.forEach(Runnable::run)));
        }
    }

    /** A task of the handler that the container runs on a thread of its own. */
    Runnable entered(Runnable task) {
        return () -> {
            Runnable leave = execution.enter();
            try {
                task.run();
            } finally {
                leave.run();
            }
        };
    }
}
