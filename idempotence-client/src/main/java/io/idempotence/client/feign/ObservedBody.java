package io.idempotence.client.feign;

import feign.Request;
import feign.Response;
import io.idempotence.client.internal.http.Decompression;
import io.idempotence.client.internal.http.HeaderLines;
import io.idempotence.client.internal.http.Observation;
import io.idempotence.client.internal.http.ResponseFraming;
import io.idempotence.client.internal.http.Watchdog.Watch;
import java.io.ByteArrayInputStream;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.Reader;
import java.io.SequenceInputStream;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.zip.InflaterInputStream;
import org.jspecify.annotations.Nullable;

/** A response body that reports when reading it fails. */
final class ObservedBody implements Response.Body {
    /** The longest error body that is read ahead, in bytes. */
    private static final int LONGEST_ERROR = 1 << 20;

    private final Response.Body delegate;
    private final Observation seen;
    private final Watch watch;
    private final long expected;
    private final HttpClientTraits client;
    private @Nullable InputStream stream;
    private boolean decompresses;

    private ObservedBody(
            Response.Body delegate, Observation seen, Watch watch, long expected, HttpClientTraits client) {
        this.delegate = delegate;
        this.seen = seen;
        this.watch = watch;
        this.expected = expected;
        this.client = client;
    }

    /**
     * Returns the response with such a body, if it has a body. {@link ResponseFraming} must prove its end, and the body of an error must be
     * complete.
     *
     * @param client may hide that something is missing, and may have reads that do not end with the exchange
     * @throws IOException if a part of the response may be missing
     */
    static Response whole(Response response, Request request, Observation seen, Watch watch, HttpClientTraits client)
            throws IOException {
        Response.Body delegate = response.body();
        try {
            int status = response.status();
            ResponseFraming framing = new ResponseFraming(
                    status, response.headers(), client.provesHeaders() || endsWithoutHeaders(response));
            if (delegate == null) {
                framing.checkAbsentBody();
                return response;
            }
            ObservedBody body =
                    new ObservedBody(delegate, seen, watch, expectedLength(request, response, delegate), client);
            if ((status >= 300 || !framing.isFramed()) && body.readAhead(status < 300 ? 1 : LONGEST_ERROR) == 0) {
                framing.checkEmptyBody(body.decompresses);
            }
            return response.toBuilder().body(body).build();
        } catch (IOException | RuntimeException e) {
            watch.close(response);
            throw e;
        }
    }

    private static boolean endsWithoutHeaders(Response response) {
        Request.ProtocolVersion version = response.protocolVersion();
        return version == Request.ProtocolVersion.HTTP_2 || version == Request.ProtocolVersion.MOCK;
    }

    /** Returns how many bytes a reader must get, or -1 if that is unknown. */
    private static long expectedLength(Request request, Response response, Response.Body body) {
        Integer length = body.length();
        boolean isKnown = length != null
                && request.httpMethod() != Request.HttpMethod.HEAD
                && HeaderLines.of(response.headers(), "Content-Encoding").isEmpty();
        return isKnown ? length : -1;
    }

    /** Reads up to {@code most} bytes ahead, which a later reader still gets. Returns how many there are. */
    private int readAhead(int most) throws IOException {
        if (isRepeatable()) {
            try (InputStream once = asInputStream()) {
                return once.readNBytes(most).length;
            }
        }
        InputStream in = asInputStream();
        byte[] ahead = in.readNBytes(most);
        stream = new SequenceInputStream(new ByteArrayInputStream(ahead), in);
        return ahead.length;
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
        InputStream ahead = stream;
        if (ahead != null) {
            return ahead;
        }
        try {
            InputStream in = delegate.asInputStream();
            decompresses = Decompression.isDoneBy(in);
            return new ObservedStream(in, seen, watch, expected, client);
        } catch (IOException e) {
            seen.bodyFailed(e);
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
        watch.close(delegate);
    }

    private static final class ObservedStream extends FilterInputStream {
        private static final int MOST_SKIPPED = 8192;

        private final Observation seen;
        private final Watch watch;
        private final long expected;
        private final HttpClientTraits client;
        private long count;

        ObservedStream(InputStream in, Observation seen, Watch watch, long expected, HttpClientTraits client) {
            super(in);
            this.seen = seen;
            this.watch = watch;
            this.expected = expected;
            this.client = client;
        }

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public int read(byte[] buffer, int offset, int length) throws IOException {
            try {
                return counted(mayBlock() ? watch.read(in, buffer, offset, length) : in.read(buffer, offset, length));
            } catch (IOException e) {
                throw failed(e);
            }
        }

        /**
         * Whether a read must not run in the caller's thread. A stream that decompresses always reports available bytes. java.net.http of
         * JDK 17 loses an interrupt in any read that takes from its queue, even if there are bytes, and after the last one.
         */
        private boolean mayBlock() throws IOException {
            return client.isJava11()
                    || (!client.endsReads()
                            && count != expected
                            && (in instanceof InflaterInputStream || in.available() == 0));
        }

        @Override
        public void close() throws IOException {
            watch.close(in);
        }

        /** Skips by reading, because a read ends with the exchange. */
        @Override
        public long skip(long n) throws IOException {
            if (n <= 0) {
                return 0;
            }
            byte[] skipped = new byte[(int) Math.min(n, MOST_SKIPPED)];
            return Math.max(0, read(skipped, 0, skipped.length));
        }

        @Override
        public boolean markSupported() {
            return false;
        }

        private IOException failed(IOException e) {
            IOException reason = watch.reason(e);
            seen.bodyFailed(reason);
            return reason;
        }

        /**
         * Checks each read. Reads of a body that arrives byte by byte never time out, and HttpURLConnection ends an interrupted body like a
         * complete one.
         */
        private int counted(int read) throws IOException {
            if (read >= 0) {
                count += read;
                watch.check();
            } else {
                ResponseFraming.checkLength(count, expected);
            }
            return read;
        }
    }
}
