package io.idempotence.server.servlet;

import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The session IDs that a container put into the URLs of one response. A session belongs to one caller: what is recorded, and later
 * replayed to others, must not carry its ID.
 */
final class SessionIds {
    /** What was inserted into URLs, for example {@code ;jsessionid=4711}. */
    private final Set<String> inserted = ConcurrentHashMap.newKeySet();

    /** Remembers what the container inserted to make {@code encoded} from {@code url}; returns {@code encoded}. */
    String encoded(String url, String encoded) {
        int added = encoded.length() - url.length();
        if (added > 0) {
            int start = 0;
            while (start < url.length() && url.charAt(start) == encoded.charAt(start)) {
                start++;
            }
            if (encoded.substring(start + added).equals(url.substring(start))) {
                inserted.add(encoded.substring(start, start + added));
            }
        }
        return encoded;
    }

    /** Whether the container has put one into a URL. */
    boolean any() {
        return !inserted.isEmpty();
    }

    /** {@code text} without any session ID. */
    String removedFrom(String text) {
        String plain = text;
        for (String id : inserted) {
            plain = plain.replace(id, "");
        }
        return plain;
    }

    /** A body without any session ID. URLs are ASCII, which nearly every encoding leaves as it is. */
    byte[] removedFrom(byte[] body) {
        if (inserted.isEmpty()) {
            return body;
        }
        String bytes = new String(body, StandardCharsets.ISO_8859_1);
        String plain = removedFrom(bytes);
        return plain.length() == bytes.length() ? body : plain.getBytes(StandardCharsets.ISO_8859_1);
    }
}
