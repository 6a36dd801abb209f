package io.idempotence.client.feign;

import feign.Request;
import feign.Response;
import io.idempotence.client.retry.HeaderLines;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.Reader;
import java.net.SocketTimeoutException;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/** A body that reports when it breaks off. */
final class ObservedBody implements Response.Body {
    private final Response.Body delegate;
    private final FeignAttempt attempt;
    private final long expected;

    private ObservedBody(Response.Body delegate, FeignAttempt attempt, long expected) {
        this.delegate = delegate;
        this.attempt = attempt;
        this.expected = expected;
    }

    /** The response with such a body, if it has one. */
    static Response in(Response response, Request request, FeignAttempt attempt) {
        Response.Body body = response.body();
        return body == null
                ? response
                : response.toBuilder()
                        .body(new ObservedBody(body, attempt, expectedLength(request, response, body)))
                        .build();
    }

    /** How many bytes a reader must see, or -1 if that cannot be told. */
    private static long expectedLength(Request request, Response response, Response.Body body) {
        Integer length = body.length();
        boolean tellable = length != null
                && request.httpMethod() != Request.HttpMethod.HEAD
                && HeaderLines.of(response.headers(), "Content-Encoding").isEmpty();
        return tellable ? length : -1;
    }

    @Override
    public @Nullable Integer length() {
        return delegate.length();
    }

    @Override
    public boolean isRepeatable() {
        return delegate.isRepeatable();
    }

    @Override
    public InputStream asInputStream() throws IOException {
        try {
            return new ObservedStream(delegate.asInputStream(), attempt, expected);
        } catch (IOException e) {
            attempt.seen().bodyFailed(e);
            throw e;
        }
    }

    @Override
    @SuppressWarnings("deprecation") // part of the interface
    public Reader asReader() throws IOException {
        return new InputStreamReader(asInputStream(), StandardCharsets.UTF_8);
    }

    @Override
    public Reader asReader(Charset charset) throws IOException {
        return new InputStreamReader(asInputStream(), charset);
    }

    @Override
    public void close() throws IOException {
        delegate.close();
    }

    private static final class ObservedStream extends FilterInputStream {
        private final FeignAttempt attempt;
        private final long expected;
        private long count;

        ObservedStream(InputStream in, FeignAttempt attempt, long expected) {
            super(in);
            this.attempt = attempt;
            this.expected = expected;
        }

        @Override
        public int read() throws IOException {
            try {
                return counted(super.read(), 1);
            } catch (IOException e) {
                attempt.seen().bodyFailed(e);
                throw e;
            }
        }

        @Override
        public int read(byte[] buffer, int offset, int length) throws IOException {
            try {
                int read = super.read(buffer, offset, length);
                return counted(read, read);
            } catch (IOException e) {
                attempt.seen().bodyFailed(e);
                throw e;
            }
        }

        @Override
        public long skip(long n) throws IOException {
            long skipped = super.skip(n);
            count += skipped;
            return skipped;
        }

        @Override
        public boolean markSupported() {
            return false;
        }

        /** A body that drips has no read that times out. HttpURLConnection ends a body that broke off like one that is complete. */
        private int counted(int read, int bytes) throws IOException {
            if (read >= 0) {
                count += bytes;
                if (attempt.isTooLate()) {
                    throw new SocketTimeoutException(
                            "the deadline of the call is over, and its answer has not come to an end");
                }
            } else if (count < expected) {
                throw new IOException("the body ended after " + count + " of " + expected + " bytes");
            }
            return read;
        }
    }
}
