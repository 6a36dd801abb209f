package io.idempotence.client.feign;

import feign.Request;
import feign.Response;
import io.idempotence.client.internal.http.Decompression;
import io.idempotence.client.internal.http.HeaderLines;
import io.idempotence.client.internal.http.Observation;
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
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.zip.InflaterInputStream;
import org.jspecify.annotations.Nullable;

/** A response body that reports when reading it fails. */
final class ObservedBody implements Response.Body {
    /** The longest error body that is read ahead, in bytes. */
    private static final int LONGEST_ERROR = 1 << 20;

    private static final Set<Integer> NEVER_WITH_BODY = Set.of(204, 304);
    /** Statuses whose body HttpURLConnection does not read if the request body was streamed. */
    private static final Set<Integer> NEVER_READ = Set.of(401, 407);

    private final Response.Body delegate;
    private final Observation seen;
    private final Watch watch;
    private final long expected;
    private final HttpClients client;
    private @Nullable InputStream stream;
    private boolean decompresses;

    private ObservedBody(Response.Body delegate, Observation seen, Watch watch, long expected, HttpClients client) {
        this.delegate = delegate;
        this.seen = seen;
        this.watch = watch;
        this.expected = expected;
        this.client = client;
    }

    /**
     * Returns the response with such a body, if it has a body. HttpURLConnection takes the beginning of a response for the whole, wherever
     * it was cut. So the end of a response must be proven. These are not accepted: a status of another kind, an error whose body is
     * incomplete, and an absent body without framing, unless the client proves that the headers are complete.
     *
     * @param client may hide that something is missing, and may have reads that do not end with the exchange
     * @throws IOException if a part of the response may be missing
     */
    static Response whole(Response response, Request request, Observation seen, Watch watch, HttpClients client)
            throws IOException {
        Response.Body delegate = response.body();
        try {
            int status = response.status();
            if (status < 200 || status > 599) {
                throw new IOException(
                        "the status is " + status + ", that of a response is 200 to 599: it may have been cut");
            }
            boolean framed = client.provesHeaders() || isFramed(response);
            if (delegate == null) {
                if (!client.provesHeaders() && !declaresNoBody(response)) {
                    throw new IOException(
                            "the response has no body, and no header that declares so: it may have been cut");
                }
                return response;
            }
            long expected = expectedLength(request, response, delegate);
            ObservedBody body = new ObservedBody(delegate, seen, watch, expected, client);
            int read = status < 300 ? 1 : LONGEST_ERROR;
            if ((status >= 300 || !framed) && body.readAhead(read) == 0 && !framed && !body.decompresses) {
                throw new IOException("the response has neither a length nor chunks nor a body: it may have been cut");
            }
            return response.toBuilder().body(body).build();
        } catch (IOException | RuntimeException e) {
            watch.close(response);
            throw e;
        }
    }

    /**
     * Whether a response declares that it has no body. A length other than 0, or chunks, announce one. HttpURLConnection returns none if
     * the connection broke among the headers.
     */
    private static boolean declaresNoBody(Response response) {
        return endsWithoutHeaders(response)
                || NEVER_READ.contains(response.status())
                || HeaderLines.of(response.headers(), "Content-Length").stream()
                        .anyMatch(length -> length.trim().matches("0+"));
    }

    private static boolean endsWithoutHeaders(Response response) {
        Request.ProtocolVersion version = response.protocolVersion();
        return NEVER_WITH_BODY.contains(response.status())
                || version == Request.ProtocolVersion.HTTP_2
                || version == Request.ProtocolVersion.MOCK;
    }

    /** Whether the response declares where its body ends. */
    private static boolean isFramed(Response response) {
        return endsWithoutHeaders(response)
                || isLength(HeaderLines.of(response.headers(), "Content-Length"))
                || isChunked(HeaderLines.of(response.headers(), "Transfer-Encoding"));
    }

    /** A cut may also have shortened the number. */
    private static boolean isLength(List<String> lengths) {
        return !lengths.isEmpty() && lengths.get(0).trim().matches("[0-9]+");
    }

    private static boolean isChunked(List<String> codings) {
        return !codings.isEmpty()
                && codings.get(codings.size() - 1)
                        .trim()
                        .toLowerCase(Locale.ROOT)
                        .endsWith("chunked");
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
        private final HttpClients client;
        private long count;

        ObservedStream(InputStream in, Observation seen, Watch watch, long expected, HttpClients client) {
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
         * JDK 17 loses an interrupt in any read that takes from its queue, also if there are bytes, and after the last one.
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
            } else if (count < expected) {
                throw new IOException("the body ended after " + count + " of " + expected + " bytes");
            }
            return read;
        }
    }
}
