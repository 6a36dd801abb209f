package io.idempotence.server.servlet;

import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.Writer;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What a handler has written so far: its body, held in memory until the execution is recorded, and whether the handler regards it as
 * committed.
 *
 * <p>The {@link HeldResponse}s that a handler may write to share one buffer. A body that is larger than the cap, or than the memory
 * that is left, streams through and is not kept. Once the client is gone the rest is thrown away, so that the handler does not fail
 * for it.
 */
final class ResponseBuffer {
    private static final Logger LOG = LoggerFactory.getLogger(ResponseBuffer.class);

    private final HandlerHeaders headers;
    private final BodyBuffer body;
    private final Executor afterDispatch;
    private final BooleanSupplier gaveUp;
    private final SessionIds sessionIds = new SessionIds();

    /** Where a handler's bytes leave when they may. */
    interface Outlet {
        HttpServletResponse target();
    }

    /** Through which response the handler writes. */
    private Outlet outlet;
    /** The kept headers as they were when bytes began to leave; null if none have, or the handler went on to change some. */
    private @Nullable List<StoredResponse.Header> leavingHeaders;

    private @Nullable ServletOutputStream stream;
    private @Nullable PrintWriter writer;

    private boolean committed;
    private boolean flushed;
    private boolean closed;
    private boolean streaming;
    private boolean incomplete;
    private boolean encodingIsOfOthers;
    private boolean clientGone;
    private long declaredLength = -1;
    private @Nullable DeferredResponse deferred;

    /**
     * @param afterDispatch runs the listener of a non-blocking stream
     * @param gaveUp whether the container has ended the response of a handler that may still be running
     */
    @SuppressWarnings("NullAway.Init") // the first outlet is made with this buffer, see HeldResponse.first()
    ResponseBuffer(BodyBuffer body, HandlerHeaders headers, Executor afterDispatch, BooleanSupplier gaveUp) {
        this.body = body;
        this.headers = headers;
        this.afterDispatch = afterDispatch;
        this.gaveUp = gaveUp;
    }

    private HttpServletResponse target() {
        return outlet.target();
    }

    // ---- what was written

    SessionIds sessionIds() {
        return sessionIds;
    }

    @Nullable
    DeferredResponse deferred() {
        return deferred;
    }

    /** Whether the body is too large to be kept. */
    boolean oversize() {
        return body.oversize();
    }

    /** Whether the handler's bytes go through at once, so that they are its response even if the container ends it. */
    boolean passesThrough() {
        return streaming;
    }

    /** Whether a byte may have left already. */
    boolean streaming() {
        return streaming || target().isCommitted();
    }

    /** Whether the handler has committed a response of its own: without this filter the client might have seen it. */
    boolean hasBegunAResponse() {
        return isCommitted() && !(deferred instanceof DeferredResponse.Failure);
    }

    /** Whether nothing can be added to the response any more. */
    boolean isWhole() {
        return closed;
    }

    /**
     * Whether {@code recorded} is all that the client gets: not cut at a declared length, not short of it, not written past this
     * buffer or changed before it.
     */
    boolean isWhatTheClientGets(byte[] recorded) {
        int status = target().getStatus();
        boolean hasNoBody =
                status == HttpServletResponse.SC_NO_CONTENT || status == HttpServletResponse.SC_NOT_MODIFIED;
        boolean asDeclared =
                declaredLength < 0 || recorded.length == declaredLength || (hasNoBody && recorded.length == 0);
        return asDeclared && !incomplete;
    }

    /** The body the client gets, as far as it was held. */
    byte[] body() {
        return writer == null ? body.bytes() : body.encoded(target().getCharacterEncoding());
    }

    /** The headers that are kept, as the handler left them. */
    List<StoredResponse.Header> keptHeaders() {
        return leavingHeaders != null ? leavingHeaders : headers.kept(target());
    }

    /** A container that sends the first bytes may compress them, and says so in headers that are not the handler's. */
    private void leaving() {
        if (leavingHeaders == null && !target().isCommitted()) {
            leavingHeaders = headers.kept(target());
        }
    }

    // ---- the end

    /** Lets go what was held. The client may be gone: that is no failure of the handler. */
    void deliver() {
        if (streaming) {
            return;
        }
        try {
            if (deferred instanceof DeferredResponse.Failure) {
                deferred.applyTo(target());
            } else {
                body.writeTo(target(), writer != null);
                if (deferred != null) {
                    deferred.applyTo(target());
                } else {
                    flushOrCloseAsTheHandlerDid();
                }
            }
        } catch (IOException e) {
            gone(e);
        } catch (RuntimeException e) {
            notTaken(e);
        }
    }

    /** The response is recorded, and its caller must ask again: what was begun must not look like the whole of it. */
    private void notTaken(RuntimeException e) {
        if (gaveUp.getAsBoolean()) {
            // A response the container has recycled throws what it likes.
            gone(e);
            return;
        }
        clientGone = true;
        LOG.warn(
                "The container or a filter in front did not take a response that is recorded; the caller gets a 500",
                e);
        HttpServletResponse target = target();
        if (target.isCommitted()) {
            // Only whoever throws makes a container cut a response that has begun.
            throw e;
        }
        headers.undo(target);
        target.setStatus(HttpServletResponse.SC_INTERNAL_SERVER_ERROR);
    }

    /** Throws away what was held and what the handler set, so that another response can be given. */
    void discard() {
        body.clear();
        headers.undo(target());
    }

    /** From now on every byte goes through at once, and is kept as well as long as it fits. */
    void stopHolding() {
        if (!streaming) {
            streaming = true;
            leaving();
            try {
                body.writeTo(target(), writer != null);
            } catch (IOException e) {
                gone(e);
            }
        }
    }

    /** A filter in front may encode the body before it comes by: what is recorded would be encoded once more in a replay. */
    void mayBeEncodedInFront() {
        encodingIsOfOthers = true;
    }

    /** The handler goes on with a response that is not held: what this buffer has is not the whole of it. */
    void bypassed() {
        incomplete = true;
    }

    /** A filter in front may do its part only then. */
    private void flushOrCloseAsTheHandlerDid() throws IOException {
        HttpServletResponse target = target();
        if (closed && writer != null) {
            target.getWriter().close();
        } else if (closed) {
            target.getOutputStream().close();
        } else if (flushed && writer != null) {
            target.getWriter().flush();
        } else if (flushed) {
            target.getOutputStream().flush();
        } else if (committed) {
            target.flushBuffer();
        }
    }

    private void gone(Exception e) {
        clientGone = true;
        LOG.debug("The client is gone; its response is recorded or not as if it were there", e);
    }

    // ---- body

    /** Chooses where the body goes. Bytes that go different ways keep their order only if the first ones leave at once. */
    void through(Outlet chosen) {
        if (chosen != outlet) {
            if (!body.isEmpty()) {
                stopHolding();
                incomplete = true;
            }
            outlet = chosen;
        }
    }

    ServletOutputStream stream(Outlet through) {
        if (writer != null) {
            throw new IllegalStateException("getWriter() was called for this response");
        }
        through(through);
        if (stream == null) {
            stream = new HeldStream();
        }
        return stream;
    }

    PrintWriter writer(Outlet through) throws IOException {
        if (stream != null) {
            throw new IllegalStateException("getOutputStream() was called for this response");
        }
        through(through);
        if (writer == null) {
            // The container settles the encoding and what Content-Type says of it.
            target().getWriter();
            if (!isCommitted()) {
                leavingHeaders = null;
            }
            writer = new PrintWriter(new HeldWriter());
        }
        return writer;
    }

    private void write(byte[] buffer, int offset, int length) {
        if (takes(length)) {
            body.write(buffer, offset, length);
            passOn(() -> target().getOutputStream().write(buffer, offset, length));
        }
    }

    private void write(char[] buffer, int offset, int length) {
        if (takes(length)) {
            body.write(buffer, offset, length);
            passOn(() -> target().getWriter().write(buffer, offset, length));
        }
    }

    /** Whether more may be written. Starts to stream when it does not fit; what was held so far can never be kept whole then. */
    private boolean takes(int more) {
        if (closed || more == 0) {
            return false;
        }
        if (!body.oversize() && !body.reserve(more)) {
            stopHolding();
            body.overflow();
        }
        return true;
    }

    private interface Action {
        void run() throws IOException;
    }

    /** Does the same to the target if bytes go through at once. */
    private void passOn(Action action) {
        if (streaming && !clientGone) {
            leaving();
            try {
                action.run();
            } catch (IOException e) {
                gone(e);
            }
        }
    }

    void flushBuffer() {
        committed = true;
        passOn(() -> target().flushBuffer());
    }

    private void flush() {
        flushed = true;
        flushBuffer();
    }

    private void close() {
        flush();
        closed = true;
        passOn(this::flushOrCloseAsTheHandlerDid);
    }

    private final class HeldStream extends ServletOutputStream {
        @Override
        public boolean isReady() {
            return true;
        }

        @Override
        public void setWriteListener(WriteListener listener) {
            afterDispatch.execute(() -> {
                try {
                    listener.onWritePossible();
                } catch (IOException | RuntimeException e) {
                    listener.onError(e);
                }
            });
        }

        @Override
        public void write(int b) {
            ResponseBuffer.this.write(new byte[] {(byte) b}, 0, 1);
        }

        @Override
        public void write(byte[] buffer, int offset, int length) {
            ResponseBuffer.this.write(buffer, offset, length);
        }

        @Override
        public void flush() {
            ResponseBuffer.this.flush();
        }

        @Override
        public void close() {
            ResponseBuffer.this.close();
        }
    }

    private final class HeldWriter extends Writer {
        @Override
        public void write(char[] buffer, int offset, int length) {
            ResponseBuffer.this.write(buffer, offset, length);
        }

        @Override
        public void flush() {
            ResponseBuffer.this.flush();
        }

        @Override
        public void close() {
            ResponseBuffer.this.close();
        }
    }

    // ---- commit

    boolean isCommitted() {
        return committed || target().isCommitted();
    }

    void reset(HttpServletResponse container) {
        resetBuffer(container);
        container.reset();
        leavingHeaders = null;
        declaredLength = -1;
        stream = null;
        writer = null;
    }

    void resetBuffer(HttpServletResponse container) {
        mustNotBeCommitted();
        container.resetBuffer();
        body.clear();
    }

    void defer(DeferredResponse response, HttpServletResponse container, boolean clearBuffer) {
        mustNotBeCommitted();
        if (clearBuffer) {
            resetBuffer(container);
        }
        container.setStatus(response.status());
        deferred = response;
        committed = true;
        closed = true;
        if (streaming) {
            leaving();
            headers.atError(target());
            try {
                response.applyTo(target());
            } catch (IOException e) {
                gone(e);
            }
        }
    }

    private void mustNotBeCommitted() {
        if (isCommitted()) {
            throw new IllegalStateException("the response is committed");
        }
    }

    // ---- headers

    /** To be called before the handler changes a header. */
    void changing(@Nullable String name, HttpServletResponse container) {
        headers.changing(name, container);
        leavingHeaders = null;
        incomplete |= encodingIsOfOthers && "Content-Encoding".equalsIgnoreCase(name);
    }

    /** To be called before the handler changes type or encoding. */
    void changingType() {
        leavingHeaders = null;
    }

    void declareLength(long length) {
        declaredLength = length;
    }
}
