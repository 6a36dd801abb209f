package io.idempotence.client.okhttp;

import io.idempotence.client.internal.http.Observation;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.net.ProtocolException;
import java.util.function.BooleanSupplier;
import okhttp3.MediaType;
import okhttp3.RequestBody;
import okio.Buffer;
import okio.BufferedSink;
import okio.ByteString;
import okio.ForwardingSink;
import okio.Okio;
import okio.Sink;
import okio.Timeout;
import org.jspecify.annotations.Nullable;

/**
 * A request body that the application's {@link RequestBody} writes once, to the wire, and that is captured meanwhile and repeated byte by
 * byte. A body with a time or a random part in it would otherwise be another request under the same ID.
 *
 * <p>A body longer than the limit is not captured. If its length is known, the application's body writes it each time, as with OkHttp
 * alone. If not, it can be sent once, because its source may not be readable again.
 */
final class RepeatableBody {
    private static final long LIMIT = 1024 * 1024;

    private final WeakReference<RequestBody> given;
    private final @Nullable MediaType type;
    private final long length;
    private final boolean duplex;
    private final boolean oneShot;

    /** The application's body. Null when it is no longer needed, because this object must not keep the application's objects alive. */
    private @Nullable RequestBody source;

    private @Nullable ByteString captured;
    private boolean faulty;

    /** @throws IOException if the body cannot return its length */
    RepeatableBody(RequestBody given) throws IOException {
        this.given = new WeakReference<>(given);
        this.source = given;
        this.type = given.contentType();
        this.length = given.contentLength();
        this.duplex = given.isDuplex();
        this.oneShot = given.isOneShot();
    }

    boolean isOf(RequestBody body) {
        return given.get() == body;
    }

    @Nullable
    MediaType type() {
        return type;
    }

    long length() {
        return length;
    }

    /**
     * Returns the body as one attempt sends it.
     *
     * @param givenUp whether the caller has gone, so that nothing more is captured after the wire broke
     */
    RequestBody sentBy(Observation seen, BooleanSupplier givenUp) {
        return new OfAttempt(seen, givenUp);
    }

    /** Whether it can still be written. False after it was written, if it cannot be written again. */
    boolean isWritable() {
        return source != null || captured != null;
    }

    /** @throws NotSendableException if it can no longer be written */
    void checkWritable() throws NotSendableException {
        if (!isWritable()) {
            throw spent();
        }
    }

    private static NotSendableException spent() {
        return new NotSendableException("the request body was sent before and cannot be written again: it is one-shot,"
                + " of unknown length and longer than " + LIMIT
                + " bytes, or was not read to its end; give the call a body"
                + " that can be written again, or make a new call with the same ID");
    }

    /** Whether the application's own body is no longer needed. */
    boolean isDetached() {
        return source == null;
    }

    /**
     * Whether the last write ended too early, or too late, because of the body itself: its source failed, or it has another length than it
     * declares. The request is then incomplete, whatever happened on the wire. A source that closed its sink has ended the request, and is
     * not faulty whatever it does after that.
     */
    boolean isFaulty() {
        return faulty;
    }

    /**
     * Returns the content, and captures it first if necessary. This is done only if the source is certainly finite and is read in full
     * anyway: its length is known and within the limit, and it may be written more than once.
     *
     * @param stillWanted throws if the caller has gone; called before each part
     * @return null if the content is unknown before it is sent
     */
    byte @Nullable [] content(IoAction stillWanted) throws IOException {
        if (oneShot || duplex || length < 0 || length > LIMIT) {
            return null;
        }
        if (captured == null) {
            writeTo(Okio.buffer(new NowhereSink(stillWanted)), () -> true);
        }
        ByteString content = captured;
        return content == null ? null : content.toByteArray();
    }

    /**
     * Returns a hash of the content.
     *
     * @return null if the content was not captured
     */
    @Nullable
    Integer contentHash() {
        ByteString content = captured;
        return content == null ? null : content.hashCode();
    }

    /** @throws IOException what the wire or the source threw */
    private void writeTo(BufferedSink wire, BooleanSupplier givenUp) throws IOException {
        faulty = false;
        ByteString content = captured;
        RequestBody from = source;
        if (content != null) {
            faulty = length >= 0 && content.size() != length;
            wire.write(content);
        } else if (from == null) {
            throw spent();
        } else {
            if (length <= LIMIT || oneShot || duplex) {
                source = null;
            }
            if (duplex) {
                from.writeTo(wire);
            } else {
                writeTo(new Tee(wire, givenUp), from);
            }
        }
    }

    private void writeTo(Tee tee, RequestBody from) throws IOException {
        boolean returned = false;
        try {
            BufferedSink sink = Okio.buffer(tee);
            from.writeTo(sink);
            if (sink.isOpen()) {
                sink.emit();
            }
            returned = true;
        } finally {
            faulty = tee.endedBySource(returned);
        }
        captured = tee.captured();
        IOException broken = tee.broken;
        if (broken != null) {
            throw broken;
        }
    }

    private final class OfAttempt extends RequestBody {
        private final Observation seen;
        private final BooleanSupplier givenUp;

        OfAttempt(Observation seen, BooleanSupplier givenUp) {
            this.seen = seen;
            this.givenUp = givenUp;
        }

        @Override
        public @Nullable MediaType contentType() {
            return type;
        }

        @Override
        public long contentLength() {
            return length;
        }

        @Override
        public boolean isDuplex() {
            return duplex;
        }

        /** OkHttp calls this before it sends a request again by itself. */
        @Override
        public boolean isOneShot() {
            return oneShot || !isWritable();
        }

        @Override
        public void writeTo(BufferedSink sink) throws IOException {
            seen.bodyTaken();
            try {
                RepeatableBody.this.writeTo(sink, givenUp);
            } finally {
                if (!isWritable()) {
                    seen.mustNotBeSentAgain();
                }
            }
        }
    }

    /** A sink that writes to the wire and captures. When the wire breaks, the source is read to its end so that it can be repeated. */
    private final class Tee implements Sink {
        private final BufferedSink wire;
        private final BooleanSupplier givenUp;
        private @Nullable Buffer copy = oneShot || length > LIMIT ? null : new Buffer();
        private @Nullable IOException broken;
        private boolean closed;
        private long count;
        private long passed;

        Tee(BufferedSink wire, BooleanSupplier givenUp) {
            this.wire = wire;
            this.givenUp = givenUp;
        }

        @Override
        public void write(Buffer bytes, long byteCount) throws IOException {
            count += byteCount;
            if (length >= 0 && count > length) {
                throw new ProtocolException("expected " + length + " bytes but received " + count);
            }
            Buffer into = copy;
            if (into != null && count <= LIMIT) {
                bytes.copyTo(into, 0, byteCount);
            } else {
                copy = null;
            }
            long rest = bytes.size() - byteCount;
            pass(() -> wire.write(bytes, byteCount));
            bytes.skip(bytes.size() - rest);
            passed += byteCount;
        }

        private void pass(IoAction action) throws IOException {
            try {
                if (broken == null) {
                    action.run();
                }
            } catch (IOException e) {
                broken = e;
            }
            if (broken != null && (copy == null || givenUp.getAsBoolean())) {
                throw broken;
            }
        }

        @Override
        public void flush() throws IOException {
            pass(wire::flush);
        }

        /**
         * Called by a body that closes its sink, such as one that compresses. That ends the request on the wire, unless bytes are missing:
         * then OkHttp does not end it either.
         */
        @Override
        public void close() throws IOException {
            if (count < length) {
                throw new ProtocolException("unexpected end of stream");
            }
            closed = true;
            pass(wire::close);
        }

        @Override
        public Timeout timeout() {
            return wire.timeout();
        }

        /**
         * Whether the source ended the request too early. When all declared bytes have left, which may be none, the request may be
         * complete, whatever the source does after that.
         */
        boolean endedBySource(boolean returned) {
            boolean asAnnounced = returned && (length < 0 || count == length);
            return broken == null && !closed && !asAnnounced && (length < 0 || passed < length);
        }

        @Nullable
        ByteString captured() {
            Buffer all = copy;
            return all == null ? null : all.snapshot();
        }
    }

    /** An action that may fail. */
    interface IoAction {
        void run() throws IOException;
    }

    private static final class NowhereSink extends ForwardingSink {
        private final IoAction stillWanted;

        NowhereSink(IoAction stillWanted) {
            super(Okio.blackhole());
            this.stillWanted = stillWanted;
        }

        @Override
        public void write(Buffer bytes, long byteCount) throws IOException {
            stillWanted.run();
            super.write(bytes, byteCount);
        }
    }
}
