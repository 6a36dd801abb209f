package io.idempotence.spring.client;

import io.idempotence.client.internal.http.Decompression;
import io.idempotence.client.internal.http.ResponseFraming;
import io.idempotence.client.internal.http.Watchdog.Watch;
import java.io.ByteArrayInputStream;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.SequenceInputStream;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpStatusCode;
import org.springframework.http.client.ClientHttpResponse;

/** A response whose body was read up to 1 MiB, so that a cut one is noticed while its call can still be made again. */
final class WholeResponse implements ClientHttpResponse {
    private static final int LONGEST = 1 << 20;
    private static final int BUFFER = 8192;

    /** The media types of responses that a server sends piece by piece, without a time limit. */
    private static final Set<String> STREAMS =
            Set.of("text/event-stream", "application/x-ndjson", "application/stream+json", "application/jsonl");

    private final ClientHttpResponse delegate;
    private final byte @Nullable [] ahead;
    private final @Nullable InputStream rest;

    private WholeResponse(ClientHttpResponse delegate, byte @Nullable [] ahead, @Nullable InputStream rest) {
        this.delegate = delegate;
        this.ahead = ahead;
        this.rest = rest;
    }

    /**
     * Reads the response.
     *
     * @throws IOException if it is not complete; the response is then closed
     */
    static WholeResponse of(ClientHttpResponse response, Watch watch, RequestFactoryKind kind) throws IOException {
        try {
            ResponseFraming framing = new ResponseFraming(status(response), headersOf(response), kind.provesHeaders());
            if (isStream(response.getHeaders())) {
                return new WholeResponse(response, null, null);
            }
            InputStream in = response.getBody();
            byte[] ahead = kind.endsReads() ? read(in, watch) : read(watched(in, watch), watch);
            boolean whole = ahead.length < LONGEST;
            if (whole) {
                framing.checkBody(ahead.length, kind.mayDecompress(), Decompression.isDoneBy(in));
            }
            return new WholeResponse(response, ahead, whole ? null : in);
        } catch (IOException | RuntimeException e) {
            watch.close(response);
            throw e;
        }
    }

    static Map<String, Collection<String>> headersOf(ClientHttpResponse response) {
        Map<String, Collection<String>> headers = new LinkedHashMap<>();
        response.getHeaders().forEach((name, values) -> headers.put(name, List.copyOf(values)));
        return headers;
    }

    /** Reads in another thread, and closes the body when the exchange ends. */
    private static InputStream watched(InputStream in, Watch watch) {
        watch.exitByClosing(in);
        return new FilterInputStream(in) {
            @Override
            public int read(byte[] buffer, int offset, int length) throws IOException {
                return watch.read(in, buffer, offset, length);
            }
        };
    }

    /** The status. HttpURLConnection returns -1 for bytes that are not an HTTP response, which Spring cannot represent. */
    private static int status(ClientHttpResponse response) throws IOException {
        try {
            return response.getStatusCode().value();
        } catch (IllegalArgumentException e) {
            throw new IOException("the response has no status: it may have been cut", e);
        }
    }

    private static boolean isStream(HttpHeaders headers) {
        String type = headers.getFirst("Content-Type");
        return type != null && STREAMS.contains(type.split(";", 2)[0].trim().toLowerCase(Locale.ROOT));
    }

    private static byte[] read(InputStream in, Watch watch) throws IOException {
        byte[] all = new byte[BUFFER];
        int length = 0;
        while (length < LONGEST) {
            int read = in.read(all, length, all.length - length);
            watch.check();
            if (read < 0) {
                break;
            }
            length += read;
            if (length == all.length && length < LONGEST) {
                all = Arrays.copyOf(all, Math.min(LONGEST, length * 2));
            }
        }
        return Arrays.copyOf(all, length);
    }

    @Override
    public HttpStatusCode getStatusCode() throws IOException {
        return delegate.getStatusCode();
    }

    @Override
    public String getStatusText() throws IOException {
        return delegate.getStatusText();
    }

    @Override
    public HttpHeaders getHeaders() {
        return delegate.getHeaders();
    }

    /** A body that was read to its end can be read again. */
    @Override
    public InputStream getBody() throws IOException {
        if (ahead == null) {
            return delegate.getBody();
        }
        InputStream read = new ByteArrayInputStream(ahead);
        return rest == null ? read : new SequenceInputStream(read, rest);
    }

    @Override
    public void close() {
        delegate.close();
    }
}
