package io.idempotence.server.servlet;

import jakarta.servlet.AsyncContext;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import java.io.IOException;

/** An asynchronous context that notifies a follower before the container. */
final class HeldAsyncContext implements AsyncContext {
    private final AsyncContext container;
    private final Follower follower;
    private final ServletRequest request;
    private final ServletResponse response;
    private final boolean keepsResponse;
    private final boolean original;

    /** The observer of asynchronous processing. Its methods are called before those of the container. */
    interface Follower {
        /** Whether the handler completes within a dispatch. The response then ends when the dispatch returns. */
        boolean completesAfterDispatch();

        /** Called when the handler completes. */
        void finish();

        /** Whether the container has ended the response already. */
        boolean gaveUp();

        /** Ends processing whose response was not written or delivered, or only in part. */
        void abort(AsyncContext container, Throwable why);

        /**
         * Completes processing that the handler has dispatched before.
         *
         * @return false if the handler has not dispatched it, and nothing was done
         * @throws IllegalStateException if the container refuses this
         */
        boolean completedDispatched(AsyncContext container);

        /**
         * Called before a dispatch.
         *
         * @return what to do if the container refuses it
         * @throws IllegalStateException if the handler has completed the processing, which the container learns only after its dispatch
         */
        Runnable beforeDispatch();

        /** Wraps a task of the handler, so that it runs inside the execution. */
        Runnable entered(Runnable task);
    }

    /**
     * @param request the request with which the handler started the processing, or else the container's own
     * @param response the response with which the handler started the processing, or else the container's own
     * @param keepsResponse whether the handler gets its response again in an ASYNC dispatch, although the container has another
     * @param original whether both would be the container's own without this filter
     */
    HeldAsyncContext(
            AsyncContext container,
            Follower follower,
            ServletRequest request,
            ServletResponse response,
            boolean keepsResponse,
            boolean original) {
        this.container = container;
        this.follower = follower;
        this.request = request;
        this.response = response;
        this.keepsResponse = keepsResponse;
        this.original = original;
    }

    boolean keepsResponse() {
        return keepsResponse;
    }

    void watch(AsyncListener listener) {
        container.addListener(listener);
    }

    @Override
    public void complete() {
        if (follower.completedDispatched(container) || follower.completesAfterDispatch()) {
            return;
        }
        try {
            follower.finish();
        } catch (Throwable e) {
            follower.abort(container, e);
            throw e;
        }
        completeContainer();
    }

    /**
     * Completes the container's context. The container may time out while the end is being recorded, which is not a failure of the handler.
     */
    private void completeContainer() {
        try {
            container.complete();
        } catch (IllegalStateException e) {
            if (!follower.gaveUp()) {
                throw e;
            }
        }
    }

    @Override
    public void dispatch() {
        dispatch(container::dispatch);
    }

    @Override
    public void dispatch(String path) {
        dispatch(() -> container.dispatch(path));
    }

    @Override
    public void dispatch(ServletContext context, String path) {
        dispatch(() -> container.dispatch(context, path));
    }

    private void dispatch(Runnable ofContainer) {
        Runnable undo = follower.beforeDispatch();
        try {
            ofContainer.run();
        } catch (Throwable e) {
            undo.run();
            throw e;
        }
    }

    @Override
    public ServletRequest getRequest() {
        return request;
    }

    @Override
    public ServletResponse getResponse() {
        return response;
    }

    @Override
    public boolean hasOriginalRequestAndResponse() {
        return original;
    }

    @Override
    public void start(Runnable task) {
        container.start(follower.entered(task));
    }

    @Override
    public void addListener(AsyncListener listener) {
        container.addListener(new ListenerWrapper(listener));
    }

    @Override
    public void addListener(AsyncListener listener, ServletRequest request, ServletResponse response) {
        container.addListener(new ListenerWrapper(listener), request, response);
    }

    @Override
    public <T extends AsyncListener> T createListener(Class<T> type) throws ServletException {
        return container.createListener(type);
    }

    @Override
    public void setTimeout(long timeout) {
        container.setTimeout(timeout);
    }

    @Override
    public long getTimeout() {
        return container.getTimeout();
    }

    /**
     * The wrapper of an application's listener. Its events have this context, because completing the container's own would bypass the
     * follower.
     */
    private final class ListenerWrapper implements AsyncListener {
        private final AsyncListener listener;
        // Asked for early: in Tomcat the context refuses to return them once the processing has ended.
        private final ServletRequest ofContainer = container.getRequest();
        private final ServletResponse toContainer = container.getResponse();

        ListenerWrapper(AsyncListener listener) {
            this.listener = listener;
        }

        @Override
        public void onComplete(AsyncEvent event) throws IOException {
            listener.onComplete(held(event));
        }

        @Override
        public void onTimeout(AsyncEvent event) throws IOException {
            listener.onTimeout(held(event));
        }

        @Override
        public void onError(AsyncEvent event) throws IOException {
            listener.onError(held(event));
        }

        @Override
        public void onStartAsync(AsyncEvent event) throws IOException {
            listener.onStartAsync(held(event));
        }

        /**
         * Replaces the container's request and response with the handler's. A listener that wrote to the container's would bypass the
         * follower.
         */
        private AsyncEvent held(AsyncEvent event) {
            ServletRequest suppliedRequest = event.getSuppliedRequest();
            ServletResponse suppliedResponse = event.getSuppliedResponse();
            return new AsyncEvent(
                    HeldAsyncContext.this,
                    suppliedRequest == ofContainer ? request : suppliedRequest,
                    suppliedResponse == toContainer ? response : suppliedResponse,
                    event.getThrowable());
        }
    }
}
