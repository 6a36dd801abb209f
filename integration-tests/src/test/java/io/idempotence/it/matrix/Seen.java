package io.idempotence.it.matrix;

import io.idempotence.it.wire.RawResponse;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.GZIPInputStream;

/**
 * The part of a response that a client sees: all of it, apart from the headers of the connection, the date, {@code Idempotent-Replayed}, and
 * session IDs, which differ between any two callers. A compressed body counts as what it decompresses to.
 *
 * @param headers sorted; names in lower case
 * @param length the Content-Length, or null if the end is marked in another way
 * @param whole whether the response came to its end
 */
record Seen(String statusLine, List<String> headers, String length, String body, boolean whole) {
    private static final Set<String> NOT_COMPARED =
            Set.of("date", "connection", "keep-alive", "transfer-encoding", "content-length", "idempotent-replayed");
    private static final Pattern SESSION_COOKIE = Pattern.compile("(?i)^Set-Cookie: *(?:JSESSIONID|SESSION)=([^;]+)");
    private static final String SESSION = "<session>";

    /** Jetty adds it to whatever sets a cookie. */
    private static final String EXPIRED = "Thu, 01 Jan 1970 00:00:00 GMT";

    static Seen of(RawResponse response) {
        Set<String> sessions = new HashSet<>();
        for (String header : response.headers()) {
            Matcher cookie = SESSION_COOKIE.matcher(header);
            if (cookie.find()) {
                sessions.add(cookie.group(1));
            }
        }
        List<String> headers = new ArrayList<>();
        for (String header : response.headers()) {
            int colon = header.indexOf(':');
            String name = header.substring(0, colon).toLowerCase(Locale.ROOT);
            String value = header.substring(colon + 1).trim();
            if (!NOT_COMPARED.contains(name) && !value.equals(EXPIRED)) {
                for (String session : sessions) {
                    value = value.replace(session, SESSION);
                }
                headers.add(name + ": " + value);
            }
        }
        headers.sort(null);
        boolean compressed = "gzip".equals(response.header("Content-Encoding"));
        boolean whole = response.whole();
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        try (InputStream in = compressed
                ? new GZIPInputStream(new ByteArrayInputStream(response.body()))
                : new ByteArrayInputStream(response.body())) {
            in.transferTo(body);
        } catch (IOException e) {
            // The compressed stream has no end.
            whole = false;
        }
        return new Seen(
                response.statusLine(),
                headers,
                compressed ? null : response.header("Content-Length"),
                // One character for each byte, so that no two bodies look the same.
                body.toString(StandardCharsets.ISO_8859_1),
                whole);
    }

    /** What a caller with another session, or none, sees of the same response. */
    Seen withoutSession() {
        return with(headers.stream()
                .filter(header -> !header.startsWith("set-cookie: "))
                .map(header -> header.replace(";jsessionid=" + SESSION, ""))
                .toList());
    }

    /** This response with these headers alone; names in lower case. */
    Seen withHeaders(Predicate<String> names) {
        return with(headers.stream()
                .filter(header -> names.test(header.substring(0, header.indexOf(':'))))
                .toList());
    }

    Seen withoutLength() {
        return new Seen(statusLine, headers, null, body, whole);
    }

    private Seen with(List<String> otherHeaders) {
        return new Seen(statusLine, otherHeaders, length, body, whole);
    }

    /** Whether the other one is this response. What came in parts may come in one piece, with its length. */
    boolean isSameAs(Seen other) {
        return statusLine.equals(other.statusLine)
                && headers.equals(other.headers)
                && (length == null || length.equals(other.length))
                && body.equals(other.body)
                && whole == other.whole;
    }

    boolean isServerError() {
        return statusLine.contains(" 5");
    }

    /** Whether this is less than the handler gave, of which {@code all} came through where no other filter is. */
    boolean hasLost(Seen all) {
        return !whole || !statusLine.equals(all.statusLine) || (body.isEmpty() && !all.body.isEmpty());
    }

    /** How the other response differs from this one. */
    String difference(Seen other) {
        List<String> differences = new ArrayList<>();
        if (!statusLine.equals(other.statusLine)) {
            differences.add("status '" + statusLine + "' -> '" + other.statusLine + "'");
        }
        List<String> lost = new ArrayList<>(headers);
        other.headers.forEach(lost::remove);
        List<String> added = new ArrayList<>(other.headers);
        headers.forEach(added::remove);
        if (!lost.isEmpty()) {
            differences.add("lost " + lost);
        }
        if (!added.isEmpty()) {
            differences.add("added " + added);
        }
        if (length != null && !length.equals(other.length)) {
            differences.add("length " + length + " -> " + other.length);
        }
        if (!body.equals(other.body)) {
            differences.add("body " + brief(body) + " -> " + brief(other.body));
        }
        if (whole != other.whole) {
            differences.add(other.whole ? "no longer cut" : "cut");
        }
        return String.join("; ", differences);
    }

    private static String brief(String body) {
        return "(" + body.length() + ")'"
                + body.substring(0, Math.min(60, body.length())).replace("\n", "\\n") + "'";
    }
}
