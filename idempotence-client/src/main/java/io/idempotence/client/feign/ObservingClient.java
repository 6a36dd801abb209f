package io.idempotence.client.feign;

import feign.Client;
import feign.Request;
import feign.Response;
import io.idempotence.client.retry.Observation;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.Reader;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Writes down what goes over the wire, and gives an attempt no more time than its call has left. */
final class ObservingClient implements Client {
    private final Client delegate;
    private final Installation installation;

    ObservingClient(Client delegate, Installation installation) {
        this.delegate = delegate;
        this.installation = installation;
    }

    @Override
    public Response execute(Request request, Request.Options options) throws IOException {
        FeignAttempt attempt = installation.attemptOf(request);
        if (attempt == null) {
            return delegate.execute(request, options);
        }
        FeignCall call = attempt.call();
        call.check(request, attempt.isPrepared());
        Observation seen = attempt.seen();
        seen.started();
        try {
            Request.Options clipped = clip(options, call.logical().deadline().millisLeft());
            Response response = delegate.execute(call.patient(request, clipped.readTimeoutMillis()), clipped);
            seen.answered(response.status(), response.headers());
            Response.Body body = response.body();
            return body == null
                    ? response
                    : response.toBuilder()
                            .body(new ObservedBody(body, seen, expectedLength(request, response, body)))
                            .build();
        } catch (IOException e) {
            if (resendsSilently(request)) {
                seen.mayHaveBeenSentBefore();
            }
            seen.failed(e);
            throw e;
        } catch (RuntimeException e) {
            seen.broken(isRefusalToSend(e));
            throw e;
        } catch (Error e) {
            seen.broken(false);
            throw e;
        }
    }

    /**
     * HttpURLConnection, under Feign's default client, sends a request without a body a second time when a kept connection
     * breaks, and tells of the second failure only. A client that is not known may be one around it.
     */
    private boolean resendsSilently(Request request) {
        byte[] body = request.body();
        return (body == null || body.length == 0)
                && !delegate.getClass().getName().startsWith("feign.okhttp.");
    }

    /** What a client throws on purpose before it sends. Anything else, a header that OkHttp cannot parse for one, may come after. */
    private static boolean isRefusalToSend(RuntimeException e) {
        return e.getClass() == IllegalArgumentException.class
                || e.getClass() == IllegalStateException.class
                || e.getClass().getName().startsWith("io.github.resilience4j.");
    }

    /** 0 means no limit to HTTP clients, so at least a millisecond stays. */
    static Request.Options clip(Request.Options options, long millisLeft) {
        long connect = clip(options.connectTimeoutMillis(), millisLeft);
        long read = clip(options.readTimeoutMillis(), millisLeft);
        if (connect == options.connectTimeoutMillis() && read == options.readTimeoutMillis()) {
            return options;
        }
        return new Request.Options(
                connect, TimeUnit.MILLISECONDS, read, TimeUnit.MILLISECONDS, options.isFollowRedirects());
    }

    private static long clip(long timeout, long left) {
        return Math.max(1, timeout <= 0 ? left : Math.min(timeout, left));
    }

    /** How many bytes a reader must see, or -1 if that cannot be told. */
    private static long expectedLength(Request request, Response response, Response.Body body) {
        Integer length = body.length();
        boolean tellable = length != null
                && request.httpMethod() != Request.HttpMethod.HEAD
                && KeyHeader.values(response.headers(), "Content-Encoding").isEmpty();
        return tellable ? length : -1;
    }

    /** A body that reports when it breaks off. */
    private static final class ObservedBody implements Response.Body {
        private final Response.Body delegate;
        private final Observation seen;
        private final long expected;

        ObservedBody(Response.Body delegate, Observation seen, long expected) {
            this.delegate = delegate;
            this.seen = seen;
            this.expected = expected;
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
                return new ObservedStream(delegate.asInputStream(), seen, expected);
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
            delegate.close();
        }
    }

    private static final class ObservedStream extends FilterInputStream {
        private final Observation seen;
        private final long expected;
        private long count;

        ObservedStream(InputStream in, Observation seen, long expected) {
            super(in);
            this.seen = seen;
            this.expected = expected;
        }

        @Override
        public int read() throws IOException {
            try {
                return counted(super.read(), 1);
            } catch (IOException e) {
                seen.bodyFailed(e);
                throw e;
            }
        }

        @Override
        public int read(byte[] buffer, int offset, int length) throws IOException {
            try {
                int read = super.read(buffer, offset, length);
                return counted(read, read);
            } catch (IOException e) {
                seen.bodyFailed(e);
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

        /** HttpURLConnection ends a body that broke off like one that is complete. */
        private int counted(int read, int bytes) throws IOException {
            if (read >= 0) {
                count += bytes;
            } else if (count < expected) {
                throw new IOException("the body ended after " + count + " of " + expected + " bytes");
            }
            return read;
        }
    }
}
