package io.idempotence.client.okhttp;

import io.idempotence.client.retry.Observation;
import java.io.IOException;
import okhttp3.MediaType;
import okhttp3.RequestBody;
import okio.Buffer;
import okio.BufferedSink;
import okio.ForwardingSink;
import okio.Okio;
import org.jspecify.annotations.Nullable;

/** Request bodies across attempts. */
final class Bodies {
    private static final long LARGEST_FROZEN = 1024 * 1024;

    private Bodies() {}

    static boolean isOnce(RequestBody body) {
        return body.isOneShot() || body.isDuplex();
    }

    /** A body with a time or a random part in it would be another request under the same ID: 422. */
    static RequestBody freeze(RequestBody body) throws IOException {
        if (isOnce(body) || body.contentLength() > LARGEST_FROZEN) {
            return body;
        }
        Buffer bytes = new Buffer();
        try (BufferedSink sink = Okio.buffer(new CappedSink(bytes))) {
            body.writeTo(sink);
        } catch (TooLargeException e) {
            return body;
        }
        return RequestBody.create(bytes.readByteString(), body.contentType());
    }

    /** The bytes of a frozen body; null if it is not frozen. */
    static byte @Nullable [] bytes(RequestBody body) throws IOException {
        if (isOnce(body) || body.contentLength() < 0 || body.contentLength() > LARGEST_FROZEN) {
            return null;
        }
        Buffer bytes = new Buffer();
        body.writeTo(bytes);
        return bytes.readByteArray();
    }

    /** {@code body}, telling {@code seen} when its only writing begins. */
    static RequestBody watched(RequestBody body, Observation seen) {
        return new WatchedBody(body, seen);
    }

    private static final class CappedSink extends ForwardingSink {
        private long count;

        CappedSink(Buffer bytes) {
            super(bytes);
        }

        @Override
        public void write(Buffer source, long byteCount) throws IOException {
            count += byteCount;
            if (count > LARGEST_FROZEN) {
                throw new TooLargeException();
            }
            super.write(source, byteCount);
        }
    }

    private static final class TooLargeException extends IOException {
        private static final long serialVersionUID = 1L;
    }

    private static final class WatchedBody extends RequestBody {
        private final RequestBody delegate;
        private final Observation seen;

        WatchedBody(RequestBody delegate, Observation seen) {
            this.delegate = delegate;
            this.seen = seen;
        }

        @Override
        public @Nullable MediaType contentType() {
            return delegate.contentType();
        }

        @Override
        public long contentLength() throws IOException {
            return delegate.contentLength();
        }

        @Override
        public void writeTo(BufferedSink sink) throws IOException {
            seen.mustNotBeSentAgain();
            delegate.writeTo(sink);
        }

        @Override
        public boolean isDuplex() {
            return delegate.isDuplex();
        }

        @Override
        public boolean isOneShot() {
            return delegate.isOneShot();
        }
    }
}
