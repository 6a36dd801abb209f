package io.idempotence.server.servlet;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.function.Function;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import java.util.zip.GZIPInputStream;
import org.jspecify.annotations.Nullable;

/**
 * The session IDs that a container put into the URLs of one response, and what filters in front added, such as a nonce against forged
 * requests. A session belongs to one caller, so a response that is recorded, and later replayed to others, must not contain them.
 */
final class SessionIds {
    /** The largest body that is decoded to search it for session IDs, in bytes. */
    private static final int LARGEST = 1 << 20;

    /**
     * Any path parameter, and a query parameter whose value is as long as a secret: 64 bits take sixteen hexadecimal digits. The query
     * parameter is matched without its separator, because a page may contain the separator as {@code &amp;}.
     */
    private static final Pattern PARAMETER = Pattern.compile(";[^;/?#=]+=[^;/?#]+|(?<=[?&])[^?&#=]+=[^&#]{16,}");

    /** How a page may escape an equals sign: as in JSON by Gson, and as in HTML. */
    private static final List<String> ESCAPED_EQUALS = List.of("\\u003d", "&#61;");

    /**
     * The text that was inserted into URLs, for example {@code ;jsessionid=4711}, in each form that it may have in a page. Immutable, and
     * replaced by a larger list. Longer ones come first, because a shorter one may be their beginning.
     */
    private volatile List<String> inserted = List.of();

    /**
     * Remembers the parameters that {@code encoded} has and {@code url} has not; returns {@code encoded}. Other changes have nothing to do
     * with a session: for example, filters insert versions into the URLs of resources, or escape characters.
     */
    @Nullable
    String encoded(@Nullable String url, @Nullable String encoded) {
        if (url != null && encoded != null && !encoded.equals(url)) {
            PARAMETER
                    .matcher(encoded)
                    .results()
                    .map(MatchResult::group)
                    .filter(parameter -> !isIn(url, parameter))
                    .forEach(this::add);
        }
        return encoded;
    }

    /** Whether a URL has a parameter, perhaps escaped otherwise if that is one of the query. */
    private static boolean isIn(String url, String parameter) {
        if (url.contains(parameter)) {
            return true;
        }
        byte[] unescaped = unescaped(parameter);
        return unescaped != null
                && Stream.of(url.split("[?&#]")).anyMatch(own -> Arrays.equals(unescaped(own), unescaped));
    }

    private static byte @Nullable [] unescaped(String text) {
        return FormRules.unescaped(new String(text.getBytes(StandardCharsets.UTF_8), StandardCharsets.ISO_8859_1));
    }

    private synchronized void add(String id) {
        if (!inserted.contains(id)) {
            inserted = Stream.of(
                            inserted.stream(),
                            Stream.of(id),
                            ESCAPED_EQUALS.stream().map(equals -> id.replace("=", equals)))
                    .flatMap(Function.identity())
                    .sorted(Comparator.comparing(String::length).reversed())
                    .toList();
        }
    }

    /** Whether there are none, so that there is nothing to remove. */
    boolean isEmpty() {
        return inserted.isEmpty();
    }

    /** Whether an encoded body may contain a session ID. Only gzip is decoded, and only as far as {@link #LARGEST}. */
    boolean mayBeIn(ByteBuffer encoded, String coding) {
        if (inserted.isEmpty() || !encoded.hasRemaining()) {
            return false;
        }
        if (!coding.equalsIgnoreCase("gzip")) {
            return true;
        }
        try (GZIPInputStream in = new GZIPInputStream(new ByteArrayInputStream(
                encoded.array(), encoded.arrayOffset() + encoded.position(), encoded.remaining()))) {
            byte[] body = in.readNBytes(LARGEST + 1);
            String bytes = new String(body, StandardCharsets.ISO_8859_1);
            return body.length > LARGEST || inserted.stream().anyMatch(bytes::contains);
        } catch (IOException notGzip) {
            return true;
        }
    }

    /** Returns {@code text} without session IDs. */
    String removedFrom(String text) {
        String plain = text;
        for (String id : inserted) {
            plain = plain.replace(id, "");
        }
        return plain;
    }

    /** Returns a body without session IDs. URLs are ASCII, which nearly every encoding leaves unchanged. */
    ByteBuffer removedFrom(ByteBuffer body) {
        if (inserted.isEmpty()) {
            return body;
        }
        String bytes = StandardCharsets.ISO_8859_1.decode(body.duplicate()).toString();
        return ByteBuffer.wrap(removedFrom(bytes).getBytes(StandardCharsets.ISO_8859_1));
    }
}
