package io.idempotence.client.internal.http;

import java.io.IOException;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * The check that a response is complete: it must show where its body ends (RFC 9112, section 6). HttpURLConnection treats a response as
 * complete wherever it was cut, and keeps a header of which only the beginning arrived. Apache HttpClient accepts a response with only some
 * of its headers.
 */
public final class ResponseFraming {
    private static final Set<Integer> NEVER_WITH_BODY = Set.of(204, 304);

    /** Statuses whose body HttpURLConnection does not read if the request body was streamed. */
    private static final Set<Integer> NEVER_READ = Set.of(401, 407);

    /** A length that fits into a long. */
    private static final Pattern LENGTH = Pattern.compile("[0-9]{1,18}");

    private final int status;
    private final Map<String, Collection<String>> headers;
    private final boolean proven;

    /**
     * @param proven whether the response has all its headers: its client or its protocol shows that
     * @throws IOException if the status is not that of a final response
     */
    public ResponseFraming(int status, Map<String, Collection<String>> headers, boolean proven) throws IOException {
        if (status < 200 || status > 599) {
            throw new IOException("the status is " + status + ", expected 200 to 599: the response may have been cut");
        }
        this.status = status;
        this.headers = headers;
        this.proven = proven;
    }

    /** Whether the response certainly has all its headers, or one that declares where its body ends. */
    public boolean isFramed() {
        return proven || NEVER_WITH_BODY.contains(status) || contentLength() >= 0 || isChunked();
    }

    /**
     * Checks a response for which its client returns no body.
     *
     * @throws IOException if no header declares the absence. A length other than 0, or chunks, announce a body
     */
    public void checkAbsentBody() throws IOException {
        if (!proven && !NEVER_WITH_BODY.contains(status) && !NEVER_READ.contains(status) && contentLength() != 0) {
            throw new IOException(
                    "the response has no body, and no header declares that it has none: it may have been cut");
        }
    }

    /**
     * Checks a body that turned out to be empty.
     *
     * @param decompressed whether it was decompressed, so that its data has an end of its own
     * @throws IOException if it may have been cut
     */
    public void checkEmptyBody(boolean decompressed) throws IOException {
        if (!isFramed() && !decompressed) {
            throw new IOException("the response has neither a length nor chunks nor a body: it may have been cut");
        }
    }

    /**
     * Checks a body that was read to its end.
     *
     * @param length how many bytes it has
     * @param mayDecompress whether the HTTP client may have decompressed the body, so that {@code length} may differ from the length that
     *     was sent
     * @param decompressed whether the HTTP client certainly decompressed the body
     * @throws IOException if it may have been cut
     */
    public void checkBody(long length, boolean mayDecompress, boolean decompressed) throws IOException {
        if (length == 0 && !proven && NEVER_READ.contains(status)) {
            return;
        }
        boolean asSent =
                !mayDecompress || HeaderLines.of(headers, "Content-Encoding").isEmpty();
        if (asSent) {
            checkLength(length, contentLength());
        }
        if (length == 0) {
            checkEmptyBody(decompressed);
        }
    }

    /** @throws IOException if a body that has ended has fewer bytes than were announced; a negative number announces nothing */
    public static void checkLength(long length, long announced) throws IOException {
        if (length < announced) {
            throw new IOException("the body ended after " + length + " of " + announced + " bytes");
        }
    }

    /** The announced length; -1 if there is none. A cut may have left an empty one, or shortened the number. */
    private long contentLength() {
        List<String> lengths = HeaderLines.of(headers, "Content-Length");
        if (lengths.isEmpty()) {
            return -1;
        }
        String length = lengths.get(0).trim();
        return LENGTH.matcher(length).matches() ? Long.parseLong(length) : -1;
    }

    private boolean isChunked() {
        List<String> codings = HeaderLines.of(headers, "Transfer-Encoding");
        return !codings.isEmpty()
                && codings.get(codings.size() - 1)
                        .trim()
                        .toLowerCase(Locale.ROOT)
                        .endsWith("chunked");
    }
}
