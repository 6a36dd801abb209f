package io.idempotence.server.servlet;

import io.idempotence.server.ClaimedExecution;
import jakarta.servlet.http.HttpServletRequest;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The dispatches of one request, shared by the thread that dispatches and the threads of asynchronous handlers. It calls the listeners of
 * non-blocking streams as a container would: on another thread, after the dispatch.
 */
final class Dispatches {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotenceFilter.class);

    private final ClaimedExecution execution;
    private Function<Throwable, Runnable> onFailedListener = failure -> () -> {};

    // Guarded by this object's lock, which is never held across I/O.
    private final Queue<Runnable> listeners = new ArrayDeque<>(0);
    private boolean listening;
    private HttpServletRequest container;
    private boolean dispatching;
    private boolean completing;
    private boolean asyncStarted;

    /** A call of a listener. */
    @FunctionalInterface
    interface ListenerCall {
        void run() throws IOException;
    }

    Dispatches(ClaimedExecution execution, HttpServletRequest container) {
        this.execution = execution;
        this.container = container;
    }

    /** @param arrived the request as the filters in front pass it on in this dispatch */
    synchronized void enter(HttpServletRequest arrived) {
        container = arrived;
        dispatching = true;
        completing = false;
        asyncStarted = false;
    }

    /** Whether a handler runs in a dispatch now. */
    synchronized boolean isDispatching() {
        return dispatching;
    }

    /** The request as the filters in front passed it on in the latest dispatch. */
    synchronized HttpServletRequest container() {
        return container;
    }

    /** Ends the dispatch. Returns whether the handler completed its asynchronous processing in it. */
    boolean leave() {
        boolean complete;
        synchronized (this) {
            dispatching = false;
            complete = completing;
        }
        startListeners();
        return complete;
    }

    /**
     * Whether a handler that completes now does so within a dispatch. It may then go on writing, because a container ends the response only
     * when the dispatch returns.
     */
    synchronized boolean completesAfterDispatch() {
        completing |= dispatching;
        return dispatching;
    }

    /** Whether the handler has completed its asynchronous processing in the latest dispatch. */
    synchronized boolean isCompleting() {
        return completing;
    }

    synchronized void startedAsync() {
        asyncStarted = true;
    }

    /** Whether the handler has started asynchronous processing in the latest dispatch. */
    synchronized boolean asyncStarted() {
        return asyncStarted;
    }

    /** @param failed called before the listener learns of its failure. Returns what to do after that */
    void onFailedListener(Function<Throwable, Runnable> failed) {
        onFailedListener = failed;
    }

    /** Fails unless a listener would be called. A handler may catch this, and write its response in another way. */
    void requireAsync() {
        if (!container().isAsyncStarted()) {
            throw new IllegalStateException(
                    "asynchronous processing was not started; call startAsync() before a listener is set");
        }
    }

    /**
     * Calls a listener when the dispatch has ended.
     *
     * @param onError the method of the listener that gets what the call throws
     */
    void callListener(ListenerCall call, Consumer<Throwable> onError) {
        synchronized (this) {
            listeners.add(() -> called(call, onError));
        }
        startListeners();
    }

    private void called(ListenerCall call, Consumer<Throwable> onError) {
        try {
            call.run();
        } catch (Throwable e) {
            Runnable afterwards = onFailedListener.apply(e);
            try {
                onError.accept(e);
            } catch (Throwable another) {
                // Tomcat would report it to the request object of this task, which may serve another request by now.
                LOG.warn("onError() of a listener failed", another);
            }
            afterwards.run();
        }
    }

    private void startListeners() {
        synchronized (this) {
            if (dispatching || listening || listeners.isEmpty()) {
                return;
            }
            listening = true;
        }
        try {
            container().getAsyncContext().start(entered(this::runListeners));
        } catch (Throwable e) {
            dropListeners();
            throw e;
        }
    }

    /** Runs the listeners one after another. A container never calls two of one request at the same time, either. */
    private void runListeners() {
        try {
            for (Runnable next = nextListener(); next != null; next = nextListener()) {
                next.run();
            }
        } catch (Throwable e) {
            dropListeners();
            throw e;
        }
    }

    private synchronized @Nullable Runnable nextListener() {
        Runnable next = listeners.poll();
        listening = next != null;
        return next;
    }

    private synchronized void dropListeners() {
        listeners.clear();
        listening = false;
    }

    /** Wraps a task that the container runs on another thread, so that it runs inside the execution. */
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
