package io.idempotence.server.servlet;

import io.idempotence.server.servlet.StoredResponse.StoredHeader;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The output of a handler so far: its body, held in memory until the execution is recorded, and whether the handler regards it as
 * committed.
 *
 * <p>The {@link HeldResponse}s that a handler may write to share one buffer. A body that is larger than the cap, or than the memory that is
 * left, streams through and is not stored. After the client has disconnected, the rest is dropped, so that the handler does not fail.
 */
final class ResponseBuffer implements HandlerOutput {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotenceFilter.class);

    private final HandlerHeaders headers;
    private final BodyBuffer body;
    private final Dispatches dispatches;
    private final BooleanSupplier gaveUp;
    private final SessionIds sessionIds = new SessionIds();
    /** Held while bytes are kept or leave, because a dispatch may end while another thread of the handler writes. */
    private final ReentrantLock writing = new ReentrantLock();

    /** The destination of a handler's bytes when they may leave. */
    interface Outlet {
        HttpServletResponse target();
    }

    /** The response through which the handler writes. */
    private Outlet outlet;

    private @Nullable ServletOutputStream stream;
    private @Nullable PrintWriter writer;

    private boolean committed;
    /** Whether the handler has written as many bytes as it had declared. A container then sends the response without a flush. */
    private boolean committedByLength;

    private boolean flushed;
    private boolean closed;
    private boolean streaming;
    private boolean delivered;
    private boolean incomplete;
    private boolean encodingIsOfOthers;
    /** Whether nothing leaves any more: the client has disconnected, or the container has ended the response. */
    private boolean dropping;

    private long declaredLength = -1;
    private boolean relaysRefusal;
    private @Nullable DeferredResponse deferred;

    /**
     * @param dispatches calls the listener of a non-blocking stream
     * @param gaveUp whether the container has ended the response of a handler that may still be running
     */
    @SuppressWarnings("NullAway.Init") // the first outlet is made with this buffer, see HeldResponse.first()
    ResponseBuffer(BodyBuffer body, HandlerHeaders headers, Dispatches dispatches, BooleanSupplier gaveUp) {
        this.body = body;
        this.headers = headers;
        this.dispatches = dispatches;
        this.gaveUp = gaveUp;
    }

    @Override
    public HttpServletResponse target() {
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

    /** Whether the body is too large to be stored. */
    boolean oversize() {
        return body.oversize();
    }

    /** Whether the handler's bytes leave at once. They are then its response even if the container ends it. */
    boolean passesThrough() {
        return streaming;
    }

    /** Whether a byte may have left already. */
    boolean streaming() {
        return streaming || target().isCommitted();
    }

    /** Whether the handler has committed a response of its own, which the client might have seen without this filter. */
    boolean hasBegunAResponse() {
        return isCommitted() && !(deferred instanceof DeferredResponse.Failure);
    }

    /** Whether nothing can be added to the response any more. */
    boolean isWhole() {
        return closed || (isCommitted() && hasDeclaredLength());
    }

    private boolean hasDeclaredLength() {
        return writer == null && declaredLength > 0 && body.length() == declaredLength;
    }

    /**
     * Whether a body of {@code recorded} bytes is all that the client gets: neither cut at a declared length nor short of it, and nothing
     * was written past this buffer or encoded in front of it.
     */
    boolean isWhatTheClientGets(int recorded) {
        int status = target().getStatus();
        boolean hasNoBody =
                status == HttpServletResponse.SC_NO_CONTENT || status == HttpServletResponse.SC_NOT_MODIFIED;
        boolean asDeclared = declaredLength < 0 || recorded == declaredLength || (hasNoBody && recorded == 0);
        return asDeclared && !incomplete;
    }

    /** The body that the client gets, as far as it was held. Valid until more is written. */
    ByteBuffer body() {
        return writer == null ? body.bytes() : body.encoded(target().getCharacterEncoding());
    }

    /** How the handler wrote the body. */
    StoredResponse.BodyOutput output() {
        String encoding = writer == null ? null : target().getCharacterEncoding();
        return new StoredResponse.BodyOutput(encoding, flushed, closed && deferred == null, declaredLength >= 0);
    }

    /** The headers to store, as the handler left them. */
    List<StoredHeader> keptHeaders() {
        return headers.kept(target());
    }

    // ---- the end

    /** Delivers what was held. A client that has disconnected is not a failure of the handler. */
    void deliver() {
        alone(() -> {
            if (!streaming && !dropping) {
                delivered = true;
                deliverHeld();
            }
        });
    }

    /**
     * Sends another response in place of the handler's.
     *
     * @return false if nothing leaves any more
     */
    boolean deliverInstead(Runnable other) {
        writing.lock();
        try {
            if (dropping) {
                return false;
            }
            body.clear();
            headers.undo(target());
            other.run();
            return true;
        } finally {
            writing.unlock();
        }
    }

    /**
     * Drops all that has not left, because the container has ended the response. Jetty uses it again, for the next request of the
     * connection. Waits until a delivery that has begun is over.
     */
    void drop() {
        alone(() -> dropping = true);
    }

    /** Runs an action while no other thread writes. It may find that the client has disconnected. */
    private void alone(Action action) {
        writing.lock();
        try {
            action.run();
        } catch (IOException e) {
            gone(e);
        } finally {
            writing.unlock();
        }
    }

    private void deliverHeld() throws IOException {
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
        } catch (RuntimeException e) {
            notTaken(e);
        }
    }

    /** Called when a recorded response was not accepted. Its caller must retry, so a partial response must not look whole. */
    private void notTaken(RuntimeException e) {
        if (gaveUp.getAsBoolean()) {
            // A response that the container has recycled may throw anything.
            gone(e);
            return;
        }
        dropping = true;
        LOG.warn("The container or a filter in front did not accept a recorded response; the caller gets a 500", e);
        HttpServletResponse target = target();
        if (target.isCommitted()) {
            // A container cuts a response that has begun only if an exception is thrown.
            throw e;
        }
        headers.undo(target);
        target.setStatus(HttpServletResponse.SC_INTERNAL_SERVER_ERROR);
    }

    /** Lets every byte leave at once from now on. It is also kept, as long as it fits. */
    void stopHolding() {
        alone(() -> {
            if (!streaming && !delivered && !dropping) {
                streaming = true;
                headers.leaving(target());
                body.writeTo(target(), writer != null);
            }
        });
    }

    /** Notes that a filter in front may encode the body before this buffer gets it. A replay would encode the recorded body once more. */
    void mayBeEncodedInFront() {
        encodingIsOfOthers = true;
    }

    /** Notes that the handler writes to a response that is not held, so that this buffer does not have all of it. */
    void bypassed() {
        incomplete = true;
    }

    /** Flushes or closes the target as the handler did, because a filter in front may act only then. */
    private void flushOrCloseAsTheHandlerDid() throws IOException {
        if (flushed) {
            output().endOn(target(), writer != null);
        } else if (committed) {
            target().flushBuffer();
        }
    }

    private void gone(Exception e) {
        dropping = true;
        LOG.debug("The client disconnected; this does not change whether its response is recorded", e);
    }

    // ---- body

    /** Chooses the destination of the body. Bytes with different destinations keep their order only if the first ones leave at once. */
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
            throw new IllegalStateException(
                    "getWriter() was called for this response, so getOutputStream() is not available; use one of them");
        }
        through(through);
        if (stream == null) {
            stream = new HeldStream(this, body, dispatches);
        }
        return stream;
    }

    PrintWriter writer(Outlet through) throws IOException {
        if (stream != null) {
            throw new IllegalStateException(
                    "getOutputStream() was called for this response, so getWriter() is not available; use one of them");
        }
        through(through);
        if (writer == null) {
            // This makes the container fix the encoding and add it to Content-Type.
            target().getWriter();
            if (!isCommitted()) {
                headers.changing();
            }
            writer = new PrintWriter(new HeldWriter(this, body));
        }
        return writer;
    }

    /** Whether more may be written. If it does not fit, the body is streamed from now on and not stored. */
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

    @Override
    public void write(int length, Runnable keep, Action leave) {
        alone(() -> {
            if (takes(length)) {
                keep.run();
                committedByLength |= hasDeclaredLength();
                passOn(leave);
            }
        });
    }

    /** Does the same to the target if bytes leave at once. */
    private void passOn(Action action) {
        alone(() -> {
            if (streaming && !dropping) {
                headers.leaving(target());
                action.run();
            }
        });
    }

    void flushBuffer() {
        committed = true;
        passOn(() -> target().flushBuffer());
    }

    @Override
    public void flush() {
        flushed = true;
        flushBuffer();
    }

    @Override
    public void close() {
        flush();
        closed = true;
        passOn(this::flushOrCloseAsTheHandlerDid);
    }

    // ---- commit

    boolean isCommitted() {
        return committed || committedByLength || target().isCommitted();
    }

    void reset(HttpServletResponse container) {
        resetBuffer(container);
        container.reset();
        headers.changing();
        declaredLength = -1;
        relaysRefusal = false;
        stream = null;
        writer = null;
    }

    void resetBuffer(HttpServletResponse container) {
        mustNotBeCommitted();
        container.resetBuffer();
        body.clear();
    }

    /** Sends an interim response, after which the handler goes on. It changes nothing of what is held. */
    void sendInterim(Action send) {
        alone(() -> {
            if (!isCommitted()) {
                send.run();
            }
        });
    }

    void defer(DeferredResponse response, HttpServletResponse container, boolean clearBuffer) {
        mustNotBeCommitted();
        if (clearBuffer) {
            resetBuffer(container);
        }
        if (!response.aborts()) {
            container.setStatus(response.status());
        }
        deferred = response;
        committed = true;
        closed = true;
        passOn(() -> {
            headers.atError(target());
            response.applyTo(target());
        });
    }

    private void mustNotBeCommitted() {
        if (isCommitted()) {
            throw new IllegalStateException(
                    "the response is committed, so it cannot be reset, redirected or made an error; do so before the first flush");
        }
    }

    // ---- headers

    /** Call this before the handler changes a header. */
    void changing(@Nullable String name, HttpServletResponse container) {
        headers.changing(name, container);
        incomplete |= encodingIsOfOthers && "Content-Encoding".equalsIgnoreCase(name);
    }

    /** Call this before the handler changes type or encoding. */
    void changingType() {
        headers.changing();
    }

    void declareLength(long length) {
        declaredLength = length;
    }

    /** Notes whether the handler has set the retryable refusal of another service. */
    void relaysRefusal(boolean relays) {
        relaysRefusal = relays;
    }

    /** Whether the response is the retryable refusal of another service, which the handler relays. */
    boolean relaysRefusal() {
        return relaysRefusal;
    }
}
