package io.idempotence.server.servlet;

import io.idempotence.internal.FieldDigest;
import io.idempotence.server.storage.Fingerprint;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.Part;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collection;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import java.util.zip.GZIPInputStream;
import org.jspecify.annotations.Nullable;

/**
 * The fingerprint of a request: method, the caller's path with its variables, its query in canonical order, media type without parameters,
 * and the body without its content coding and multipart boundary. Each piece is preceded by its length.
 */
final class RequestFingerprint {
    /** The character to which a container decodes bytes that are invalid in the encoding. */
    private static final char UNDECODABLE = '\uFFFD';

    private static final String UNDECODABLE_FORM =
            "a filter in front of the idempotence filter has had the container parse a form that is not valid in its"
                    + " character encoding, so that it cannot be compared; put the idempotence filter before it";
    private static final String UNDECODABLE_PART =
            "a multipart body has a name, a file name, a header or a text that is not valid in the encoding in which the container"
                    + " parsed it, so that it cannot be compared; have a filter before the idempotence filter set the encoding that callers use";

    private final FieldDigest digest = new FieldDigest();

    private RequestFingerprint() {}

    /**
     * The fingerprint of a request whose body was read into memory.
     *
     * @param contentType the request's, null if it has none
     * @param memory a share of the budget. For the time of this call, an unzipped body and parsed JSON take shares of their own
     * @throws RequestNotTakenException if the budget does not have as much
     */
    static Fingerprint of(
            HttpServletRequest request,
            @Nullable String contentType,
            byte[] body,
            int cap,
            BodyComparison comparison,
            MemoryBudget.Share memory)
            throws RequestNotTakenException {
        RequestFingerprint fingerprint = new RequestFingerprint();
        String mediaType = MediaTypes.withoutParameters(contentType);
        fingerprint.head(request, mediaType);
        String boundary = MediaTypes.boundary(contentType);
        if (isGzip(request)) {
            try (MemoryBudget.Share decoded = memory.another()) {
                fingerprint.add(unzipped(body, cap, decoded), boundary, mediaType, comparison, memory);
            }
        } else {
            fingerprint.add(body, boundary, mediaType, comparison, memory);
        }
        return Fingerprint.of(fingerprint.digest.digest());
    }

    private void add(
            byte[] plain,
            @Nullable String boundary,
            String mediaType,
            BodyComparison comparison,
            MemoryBudget.Share memory)
            throws RequestNotTakenException {
        if (boundary != null) {
            addWithout(plain, ("--" + boundary).getBytes(StandardCharsets.ISO_8859_1));
            return;
        }
        try (MemoryBudget.Share parsed = memory.another()) {
            parsed.require(CanonicalJson.memoryOf(comparison, mediaType, plain.length));
            add(comparison.bytesToCompare(mediaType, plain));
        }
    }

    /**
     * The fingerprint of a request whose parts the container has parsed; null if they have more bytes than {@code cap}.
     *
     * @throws IllegalStateException if a part could not be decoded and the container did not keep its bytes, so that another would look the
     *     same
     */
    static @Nullable Fingerprint of(HttpServletRequest request, Collection<Part> parts, int cap) throws IOException {
        RequestFingerprint fingerprint = new RequestFingerprint();
        fingerprint.head(request, MediaTypes.withoutParameters(MediaTypes.of(request)));
        long left = cap;
        for (Part part : parts) {
            left -= part.getSize();
            if (left < 0) {
                return null;
            }
            fingerprint.addDecoded(part.getName(), UNDECODABLE_PART);
            fingerprint.addDecoded(part.getSubmittedFileName(), UNDECODABLE_PART);
            fingerprint.addDecoded(part.getContentType(), UNDECODABLE_PART);
            fingerprint.addOtherHeaders(part);
            fingerprint.digest.length(part.getSize());
            try (InputStream in = part.getInputStream()) {
                byte[] buffer = new byte[8192];
                for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                    fingerprint.digest.part(buffer, 0, n);
                }
            }
        }
        FormRules rules = FormRules.of(request);
        if (rules != null && !rules.keepsBytesOfTexts()) {
            fingerprint.addTexts(Wrappers.innermost(request), parts);
        }
        return Fingerprint.of(fingerprint.digest.digest());
    }

    private void addOtherHeaders(Part part) {
        Map<String, Collection<String>> headers = new TreeMap<>();
        for (String name : part.getHeaderNames()) {
            String known = name.toLowerCase(Locale.ROOT);
            if (!known.equals("content-disposition") && !known.equals("content-type")) {
                headers.put(known, part.getHeaders(name));
            }
        }
        digest.add(headers.size());
        headers.forEach((name, lines) -> {
            addDecoded(name, UNDECODABLE_PART);
            digest.add(lines.size());
            lines.forEach(line -> addDecoded(line, UNDECODABLE_PART));
        });
    }

    /** Adds the texts of parts as the container decoded them. Values of the query come first, and are compared by their bytes elsewhere. */
    private void addTexts(ServletRequest container, Collection<Part> parts) {
        Map<String, Integer> counts = new TreeMap<>();
        for (Part part : parts) {
            if (part.getSubmittedFileName() == null && part.getName() != null) {
                counts.merge(part.getName(), 1, Integer::sum);
            }
        }
        counts.forEach((name, count) -> {
            String[] all = container.getParameterValues(name);
            // Null if the container keeps all of these as files, with their bytes.
            if (all != null) {
                Stream.of(all)
                        .skip(Math.max(0, all.length - count))
                        .forEach(text -> addDecoded(text, UNDECODABLE_PART));
            }
        });
    }

    /**
     * The fingerprint of a form that a filter in front had the container parse.
     *
     * @throws IllegalStateException if the form could not be decoded, so that another form would look the same
     */
    static Fingerprint ofParameters(HttpServletRequest request) {
        RequestFingerprint fingerprint = new RequestFingerprint();
        fingerprint.head(request, MediaTypes.withoutParameters(MediaTypes.of(request)));
        new TreeMap<>(request.getParameterMap()).forEach((name, values) -> {
            fingerprint.addDecoded(name, UNDECODABLE_FORM);
            fingerprint.digest.add(values.length);
            for (String value : values) {
                fingerprint.addDecoded(value, UNDECODABLE_FORM);
            }
        });
        return Fingerprint.of(fingerprint.digest.digest());
    }

    private void head(HttpServletRequest request, String mediaType) {
        OriginalPath path = OriginalPath.of(request);
        add(request.getMethod());
        add(path.uri());
        CanonicalQuery.of(path.query()).addTo(digest);
        add(mediaType);
    }

    private static boolean isGzip(HttpServletRequest request) {
        String coding = request.getHeader("Content-Encoding");
        return coding != null && coding.trim().toLowerCase(Locale.ROOT).matches("(x-)?gzip");
    }

    /** Returns a body without gzip, or unchanged if it is damaged or would unpack to more than the cap. */
    private static byte[] unzipped(byte[] body, int cap, MemoryBudget.Share memory) throws RequestNotTakenException {
        try (GZIPInputStream in = new GZIPInputStream(new ByteArrayInputStream(body))) {
            byte[] plain = memory.read(in, -1, cap);
            return plain.length > cap ? body : plain;
        } catch (IOException damaged) {
            return body;
        }
    }

    /** Adds the pieces between the delimiters, so that equal parts under another boundary are the same body. */
    private void addWithout(byte[] body, byte[] delimiter) {
        int from = 0;
        for (int at = indexOf(body, delimiter, 0); at >= 0; at = indexOf(body, delimiter, at + 1)) {
            int end = at + delimiter.length;
            if (startsLine(body, at) && endsDelimiter(body, end)) {
                digest.length(at - from).part(body, from, at - from);
                from = end;
            }
        }
        digest.length(body.length - from).part(body, from, body.length - from);
    }

    private static boolean startsLine(byte[] body, int at) {
        return at == 0 || (at >= 2 && body[at - 2] == '\r' && body[at - 1] == '\n');
    }

    /**
     * Whether a delimiter ends at {@code end}. A delimiter is a line of its own, followed by blanks or, if it is the last, by two hyphens
     * (RFC 2046, section 5.1.1).
     */
    private static boolean endsDelimiter(byte[] body, int end) {
        int i = end;
        if (i + 1 < body.length && body[i] == '-' && body[i + 1] == '-') {
            i += 2;
        }
        while (i < body.length && (body[i] == ' ' || body[i] == '\t')) {
            i++;
        }
        return i == body.length || (i + 1 < body.length && body[i] == '\r' && body[i + 1] == '\n');
    }

    private static int indexOf(byte[] bytes, byte[] wanted, int from) {
        for (int i = from; i <= bytes.length - wanted.length; i++) {
            if (bytes[i] == wanted[0] && Arrays.equals(bytes, i, i + wanted.length, wanted, 0, wanted.length)) {
                return i;
            }
        }
        return -1;
    }

    private void add(@Nullable String text) {
        digest.addOrAbsent(text);
    }

    /** Adds a text that the container decoded. */
    private void addDecoded(@Nullable String text, String undecodable) {
        if (text != null && text.indexOf(UNDECODABLE) >= 0) {
            throw new IllegalStateException(undecodable);
        }
        add(text);
    }

    private void add(byte[] bytes) {
        digest.add(bytes);
    }
}
